// State shared by the audits of all chambers of one log, and the caller's policy: limits, addresses, unsigned moves.

import type { KeyDirectory } from '../crypto/key-directory.ts';
import { isSignedBy, type VerifyingKey } from '../crypto/verify.ts';
import {
  type BlockReference,
  COVERED_SECONDS_MAX,
  fromHex,
  type Hex,
  type Millis,
  SIGNATURE_AGES,
} from '../vocabulary/values.ts';
import type { ContractProof } from './chain/recorded-block.ts';
import type { Originals } from './line/originals.ts';
import { UsedValues } from './line/used-values.ts';
import type { Verify } from './line/verify.ts';
import type { AuditPolicy } from './policy.ts';
import type { Outcome } from './report/findings.ts';
import type { ReportedCheck } from './report/report-types.ts';

export interface AuditClock {
  readonly now: () => Millis;
  /** Whether a log that is entirely in the future is suspect: the input is a service, or the caller stated the time. */
  readonly isStated: boolean;
}

const MACHINE_CLOCK: AuditClock = { now: () => Date.now(), isStated: false };

/** The service's own statements about its log and keys. */
export interface StubSigners {
  readonly logId: () => string | null;
  /** Resolves to undefined if the directory can't be read. */
  readonly directory: () => Promise<KeyDirectory | undefined>;
}

export interface AuditContext {
  readonly policy: AuditPolicy;
  readonly verify: Verify;
  readonly clock: AuditClock;
  /** Signatures of creations. Their requests name no chamber, so each signature may occur in only one chamber of a log. */
  readonly creations: UsedValues;
  /** By DID. Decoding a key costs more than most checks. */
  readonly keys: Map<string, VerifyingKey>;
  readonly origins: Candidates;
  readonly registries: Candidates;
  readonly factories: Candidates;
  /** The chain of the first transaction; a log has only one. */
  readonly chains: Set<number>;
  /** By transaction hash: the subject it was signed for, and the subject whose outcome names it. */
  readonly signedFor: Subjects;
  readonly namedFor: Subjects;
  /** By account and nonce. */
  readonly nonces: Subjects;
  /** By token address. */
  readonly tokens: Subjects;
  readonly blocks: BlockHeights;
  /** Equal check results, shared by the reports of many chambers. */
  readonly outcomes: Map<string, ReportedCheck>;
  /** Lines that the caller has kept, such as the originals of stubs. */
  readonly originals: Originals | undefined;
  /** The service's log and keys; undefined for a file. */
  readonly signers: StubSigners | undefined;
  /** The log of the first stub; all stubs must belong to it. */
  readonly stubLog: { logId?: string };
  /** The chain's verdicts, cached because chambers have members in common. */
  readonly contractProofs: WeakMap<ContractProof, Outcome>;
}

export function auditContext(
  policy: AuditPolicy = {},
  verify: Verify = isSignedBy,
  clock: AuditClock = MACHINE_CLOCK,
  { originals, signers }: Partial<Pick<AuditContext, 'originals' | 'signers'>> = {},
): AuditContext {
  const registries = new Candidates('registries', '--registry', policy.registries?.map(lowerCase));
  return {
    policy,
    verify,
    clock,
    creations: new UsedValues(),
    keys: new Map(),
    origins: new Candidates('origins', '--origin', policy.origins),
    registries,
    factories: new Candidates('factories', '--factory', policy.factories?.map(lowerCase), registries),
    chains: new Set(),
    signedFor: new Subjects(),
    namedFor: new Subjects(),
    nonces: new Subjects(),
    tokens: new Subjects(),
    blocks: new BlockHeights(),
    outcomes: new Map(),
    contractProofs: new WeakMap(),
    originals,
    signers,
    stubLog: {},
  };
}

/** Returns a fresh context for another pass over the same lines; keeps the decoded keys. */
export function rerunContext({ policy, verify, keys, clock, ...known }: AuditContext): AuditContext {
  return { ...auditContext(policy, verify, clock, known), keys };
}

/** Whether a line is old enough that a checkpoint must cover it. */
export function isDue(at: Millis, { now }: Pick<AuditClock, 'now'>): boolean {
  return at <= now() - COVERED_SECONDS_MAX * 1_000;
}

/** Whether a line is dated further in the future than the accepted clock skew. */
export function isAhead(at: Millis, { clock, policy }: Pick<AuditContext, 'clock' | 'policy'>): boolean {
  const { maxSkewSeconds = SIGNATURE_AGES.defaults.maxSkewSeconds } = policy;
  return at > clock.now() + maxSkewSeconds * 1_000;
}

/** Removes the checksum, so that addresses can be compared. */
export function lowerCase<Address extends string>(address: Address): Lowercase<Address> {
  return address.toLowerCase() as Lowercase<Address>;
}

/** The purpose of a transaction or a token: an idea of a chamber or, without one, the chamber's commitment. */
export interface Subject {
  readonly chamberId: number;
  readonly ideaId: string | undefined;
}

export function nameOf({ chamberId, ideaId }: Subject): string {
  return `${ideaId ?? 'the commitment'} of chamber ${chamberId}`;
}

/** The first subject of each hash or address of a log. Takes about 27 bytes per value and 16 per subject. */
export class Subjects {
  /** The index of each value's subject, from 1. */
  readonly #values = new UsedValues();
  readonly #chamberIds: number[] = [];
  /** The slots of ideas; 0 is the commitment. */
  readonly #slots: number[] = [];

  /** Records the value's first subject; returns the recorded subject if it differs from `subject`. */
  conflict(value: Hex, subject: Subject): Subject | undefined {
    const first = this.#values.add(fromHex(value), this.#indexOfSubject(subject));
    return this.#otherThan(subject, first);
  }

  /** Returns the value's recorded subject if it differs from `subject`. */
  of(value: Hex, subject: Subject): Subject | undefined {
    return this.#otherThan(subject, this.#values.first(fromHex(value)));
  }

  /** Shares one entry among consecutive values of the same subject. */
  #indexOfSubject({ chamberId, ideaId }: Subject): number {
    const slot = slotOf(ideaId);
    if (this.#chamberIds.at(-1) !== chamberId || this.#slots.at(-1) !== slot) {
      this.#chamberIds.push(chamberId);
      this.#slots.push(slot);
    }
    return this.#slots.length;
  }

  #otherThan(subject: Subject, index: number | undefined): Subject | undefined {
    if (index === undefined) return undefined;
    const [chamberId = 0, slot = 0] = [this.#chamberIds[index - 1], this.#slots[index - 1]];
    if (chamberId === subject.chamberId && slot === slotOf(subject.ideaId)) return undefined;
    return { chamberId, ideaId: slot === 0 ? undefined : `idea-${slot}` };
  }
}

/** The rules have rejected service events with other forms of ids. */
function slotOf(ideaId = 'idea-0'): number {
  return Number(ideaId.slice('idea-'.length));
}

/** A block's hash covers its height, so a hash with two heights is forged. */
export class BlockHeights {
  /** The index of each hash's height, from 1. */
  readonly #values = new UsedValues();
  readonly #heights: number[] = [];

  problemOf({ blockNumber, blockHash }: BlockReference): string | undefined {
    const index = this.#values.add(fromHex(blockHash), this.#heights.length + 1);
    if (index === undefined) this.#heights.push(blockNumber);
    const first = index === undefined ? blockNumber : this.#heights[index - 1];
    return first === blockNumber
      ? undefined
      : `names ${blockHash} as block ${blockNumber}, but another line names it as block ${first}`;
  }
}

const NAMED_MAX = 3;
/** Bounds the memory for a log that names a new address in every line. */
const FOUND_MAX = 100;

/** Addresses of one kind that a log names. If the caller does not list the service's own, there must be only one. */
export class Candidates {
  readonly #kind: string;
  readonly #option: string;
  readonly #given: ReadonlySet<string>;
  readonly #others: Candidates | undefined;
  readonly #found = new Set<string>();

  constructor(kind: string, option: string, given: readonly string[] = [], others?: Candidates) {
    this.#others = others;
    this.#kind = kind;
    this.#option = option;
    this.#given = new Set(given);
  }

  /**
   * Records the address. Returns false if the address is not one of those that the caller listed, or is known to be of another kind;
   * the latter is not recorded.
   */
  take(address: string): boolean {
    if (this.#others?.has(address)) return false;
    if (this.#found.size < FOUND_MAX) this.#found.add(address);
    return this.#given.size === 0 || this.#given.has(address);
  }

  has(address: string): boolean {
    return this.#given.size > 0 ? this.#given.has(address) : this.#found.has(address);
  }

  get found(): readonly string[] {
    return [...this.#found];
  }

  /** The addresses listed by the caller; if there are none, those found in the log. */
  get all(): readonly string[] {
    return [...(this.#given.size > 0 ? this.#given : this.#found)];
  }

  /** An open question for the caller if several addresses are possible. */
  get doubt(): string | undefined {
    if (this.#given.size > 0 || this.#found.size < 2) return undefined;
    return `the log names ${this.#found.size} ${this.#kind} (${this.list}): list the service’s own with ${this.#option}`;
  }

  get list(): string {
    const { all } = this;
    return all.slice(0, NAMED_MAX).join(', ') + (all.length > NAMED_MAX ? ' …' : '');
  }
}
