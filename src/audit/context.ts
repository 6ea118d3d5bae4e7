// What the chambers of one log share in an audit, and what only its caller can decide: limits, addresses, unsigned moves.

import { isSignedBy, type VerifyingKey } from '../crypto/verify.ts';
import type { ContractProof } from './chain/recorded-block.ts';
import { SignatureSet } from './line/signature-set.ts';
import type { Verify } from './line/verify.ts';
import type { AuditPolicy } from './policy.ts';
import type { Outcome } from './report/findings.ts';
import type { ReportedCheck } from './report/report-types.ts';

export interface AuditContext {
  readonly policy: AuditPolicy;
  readonly verify: Verify;
  /** The signatures of creations: their requests name no chamber, so none may occur in two chambers of one log. */
  readonly creations: SignatureSet;
  /** The keys by DID: decoding a key costs more than most checks. */
  readonly keys: Map<string, VerifyingKey>;
  readonly origins: Candidates;
  readonly registries: Candidates;
  readonly factories: Candidates;
  /** The chain of the first transaction: a log belongs to one. */
  readonly chains: Set<number>;
  /** What the transactions of the log were signed for, and of what they are named as the outcome. */
  readonly signedFor: Subjects;
  readonly namedFor: Subjects;
  /** The idea that has a token. */
  readonly tokens: Subjects;
  /** Outcomes of checks that chambers have in common, which their reports share. */
  readonly outcomes: Map<string, ReportedCheck>;
  /** What the chain said of them: chambers have members in common. */
  readonly contractProofs: WeakMap<ContractProof, Outcome>;
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
    signedFor: new Subjects(),
    namedFor: new Subjects(),
    tokens: new Subjects(),
    outcomes: new Map(),
    contractProofs: new WeakMap(),
  };
}

/** Contracts are compared without regard to checksums. */
export function lowerCase(address: string): string {
  return address.toLowerCase();
}

/** More are forgotten, so that they don't fill the memory. */
const SUBJECTS_MAX = 100_000;

/** The hashes or addresses of a log, and to which chamber or idea each belongs. */
export class Subjects {
  readonly #subjects = new Map<string, string>();

  /** Keeps the first subject of the value, and returns it if it is another one. */
  conflict(value: string, subject: string): string | undefined {
    const first = this.of(value, subject);
    if (this.#subjects.size >= SUBJECTS_MAX) this.#subjects.clear();
    this.#subjects.set(value, first ?? subject);
    return first;
  }

  /** The value's subject if it is another one. */
  of(value: string, subject: string): string | undefined {
    const found = this.#subjects.get(value);
    return found === subject ? undefined : found;
  }
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
