// Takes the leaves of lines that somebody else serves. A stub's leaf counts only once its signature is verified, under a key that the
// reader takes for the service's.
import { type ForumEvent, fromLine, toLine } from '../vocabulary/events.ts';
import type { Withheld } from '../vocabulary/withheld.ts';
import { InvalidStub, lineLeaf, stubClaim } from './stub.ts';
import { isSignedBy, toVerifyingKey, type VerifyingKey } from './verify.ts';

/** Why a stub's log or key is not the service's; undefined if it is. The signature is verified elsewhere. */
export type SignerProblem = (withheld: Withheld) => string | undefined;

/** A service has few keys, and a lying one must not fill the memory. */
const KEYS_MAX = 16;

export class StubReader {
  readonly #signerProblem: SignerProblem;
  /** By the key as the stub has it. */
  readonly #keys = new Map<string, VerifyingKey>();

  constructor(signerProblem: SignerProblem) {
    this.#signerProblem = signerProblem;
  }

  /** The leaf of a line and of the event in it, 32 bytes. Throws InvalidStub. */
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

/** The stub in a text that may be anything, signed under the key that it names. Throws an Error. */
export function openStub(text: string): ForumEvent & { readonly withheld: Withheld } {
  const event = fromLine(text);
  new StubReader(() => undefined).leafOf(new TextEncoder().encode(text), event);
  const { withheld } = event;
  if (withheld === undefined) throw new InvalidStub('is no stub');
  return { ...event, withheld };
}
