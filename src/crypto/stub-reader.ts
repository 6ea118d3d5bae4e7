// Computes the leaves of untrusted lines. Accepts a stub's stated leaf only after verifying its signature, under a key that the caller
// accepts as the service's.
import { type ForumEvent, fromLine, toLine } from '../vocabulary/events.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import { InvalidStub, lineLeaf, stubClaim } from './stub.ts';
import { isSignedBy, toVerifyingKey, type VerifyingKey } from './verify.ts';

/** Returns why a stub's log or key is not the service's; undefined if it is. Does not verify the signature. */
export type SignerProblem = (withheld: Withheld) => string | undefined;

/** Bounds memory use: an honest service has few keys. */
const KEYS_MAX = 16;

export class StubReader {
  readonly #signerProblem: SignerProblem;
  /** By the key's text in the stub. */
  readonly #keys = new Map<string, VerifyingKey>();

  constructor(signerProblem: SignerProblem) {
    this.#signerProblem = signerProblem;
  }

  /** Returns the 32-byte leaf of a line that contains `event`. Throws InvalidStub. */
  leafOf(line: Uint8Array, event: ForumEvent): Uint8Array {
    const claim = stubClaim(event);
    if (claim === undefined) return lineLeaf(line);
    if (new TextDecoder().decode(line) !== toLine(event))
      throw new InvalidStub('is a stub that is not in canonical form');
    const problem = this.#signerProblem(claim.withheld);
    if (problem !== undefined) throw new InvalidStub(problem);
    if (!isSignedBy(this.#keyOf(claim.withheld.key, claim.publicKey), claim.message, claim.signature))
      throw new InvalidStub('is a stub whose signature does not verify');
    return claim.leaf;
  }

  #keyOf(name: string, publicKey: Uint8Array): VerifyingKey {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = toVerifyingKey(publicKey);
    if (this.#keys.size < KEYS_MAX) this.#keys.set(name, key);
    return key;
  }
}

/** Parses an untrusted stub, and verifies its signature under the key that it names. Throws an Error. */
export function openStub(text: string): ForumEvent & { readonly withheld: Withheld } {
  const event = fromLine(text);
  new StubReader(() => undefined).leafOf(new TextEncoder().encode(text), event);
  const { withheld } = event;
  if (withheld === undefined) throw new InvalidStub('is not a stub');
  return { ...event, withheld };
}
