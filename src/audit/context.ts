// What the chambers of one log share in an audit, and what only its caller can decide: limits, addresses, unsigned moves.
import { isSignedBy, type VerifyingKey } from '../crypto/verify.ts';
import { SignatureSet } from './signature-set.ts';
import type { Verify } from './verify.ts';

export interface AuditPolicy {
  /** The limits that the service was configured with. */
  readonly maxAgeSeconds?: number | undefined;
  readonly maxSkewSeconds?: number | undefined;
  /** The service's own addresses and contracts, all of them; empty: unknown. */
  readonly origins?: readonly string[] | undefined;
  readonly registries?: readonly string[] | undefined;
  readonly factories?: readonly string[] | undefined;
  readonly allowUnsigned?: boolean | undefined;
  /** Transactions may be in other blocks than the lines record. */
  readonly allowReorganized?: boolean | undefined;
}

export interface AuditContext {
  readonly policy: AuditPolicy;
  readonly verify: Verify;
  /** Of creations: their requests name no chamber, so none may occur in two chambers of one log. */
  readonly creations: SignatureSet;
  /** By DID: decoding a key costs more than most checks. */
  readonly keys: Map<string, VerifyingKey>;
  readonly origins: Candidates;
  readonly registries: Candidates;
  readonly factories: Candidates;
  /** The chain of the first transaction: a log belongs to one. */
  readonly chains: Set<number>;
}

export function auditContext(policy: AuditPolicy = {}, verify: Verify = isSignedBy): AuditContext {
  return {
    policy,
    verify,
    creations: new SignatureSet(),
    keys: new Map(),
    origins: new Candidates('origins', '--origin', policy.origins),
    registries: new Candidates('registries', '--registry', policy.registries?.map(lowerCase)),
    factories: new Candidates('factories', '--factory', policy.factories?.map(lowerCase)),
    chains: new Set(),
  };
}

/** Contracts are compared without regard to checksums. */
export function lowerCase(address: string): string {
  return address.toLowerCase();
}

const NAMED_MAX = 3;
/** A log that names another one in every line must not fill the memory. */
const FOUND_MAX = 100;

/** Addresses of one kind that a log names: those of the service are given, or there is only one. */
export class Candidates {
  readonly #kind: string;
  readonly #option: string;
  readonly #given: ReadonlySet<string>;
  readonly #found = new Set<string>();

  constructor(kind: string, option: string, given: readonly string[] = []) {
    this.#kind = kind;
    this.#option = option;
    this.#given = new Set(given);
  }

  /** Notes the address; false where the service's are given and this is none of them. */
  take(address: string): boolean {
    if (this.#found.size < FOUND_MAX) this.#found.add(address);
    return this.#given.size === 0 || this.#given.has(address);
  }

  get found(): readonly string[] {
    return [...this.#found];
  }

  /** Those given, else those found. */
  get all(): readonly string[] {
    return [...(this.#given.size > 0 ? this.#given : this.#found)];
  }

  /** Why it is open which of them are the service's; undefined where it is not. */
  get doubt(): string | undefined {
    if (this.#given.size > 0 || this.#found.size < 2) return undefined;
    return `the log names ${this.#found.size} ${this.#kind} (${this.list}): say with ${this.#option} which are the service’s`;
  }

  get list(): string {
    const { all } = this;
    return all.slice(0, NAMED_MAX).join(', ') + (all.length > NAMED_MAX ? ' …' : '');
  }
}
