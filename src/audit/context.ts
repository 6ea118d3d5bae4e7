// State shared by the audits of all chambers of one log, and decisions of the caller: limits, addresses, unsigned moves.

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
  /** Whether a log is judged even if its first line is later: a service was read, or the caller stated the time. */
  readonly isStated: boolean;
}

const MACHINE_CLOCK: AuditClock = { now: () => Date.now(), isStated: false };

/** What a service says of itself; undefined where the input is a file. */
export interface StubSigners {
  readonly logId: () => string | null;
  /** undefined if it can't be read. */
  readonly directory: () => Promise<KeyDirectory | undefined>;
}

export interface AuditContext {
  readonly policy: AuditPolicy;
  readonly verify: Verify;
  readonly clock: AuditClock;
  /** Signatures of creations: their requests name no chamber, so each may occur in one chamber of a log only. */
  readonly creations: UsedValues;
  /** By DID: decoding a key costs more than most checks. */
  readonly keys: Map<string, VerifyingKey>;
  readonly origins: Candidates;
  readonly registries: Candidates;
  readonly factories: Candidates;
  /** The chain of the first transaction: a log has only one. */
  readonly chains: Set<number>;
  /** By transaction: what it was signed for, and the outcome for which it is named. */
  readonly signedFor: Subjects;
  readonly namedFor: Subjects;
  /** By account and nonce: what was signed. */
  readonly nonces: Subjects;
  /** By token: its idea. */
  readonly tokens: Subjects;
  readonly blocks: BlockHeights;
  /** Equal results of checks, shared by the reports of many chambers. */
  readonly outcomes: Map<string, ReportedCheck>;
  /** Lines that the caller has kept, such as the originals of stubs. */
  readonly originals: Originals | undefined;
  /** The service's log and keys; undefined for a file. */
  readonly signers: StubSigners | undefined;
  /** The log of the first stub: all are of one log. */
  readonly stubLog: { logId?: string };
  /** The chain's verdicts: chambers have members in common. */
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

/** For another pass over the same lines; decoded keys are kept. */
export function contextOfRerun({ policy, verify, keys, clock, ...known }: AuditContext): AuditContext {
  return { ...auditContext(policy, verify, clock, known), keys };
}

/** Whether a line is so old that a checkpoint must cover it. */
export function isDue(at: Millis, { now }: Pick<AuditClock, 'now'>): boolean {
  return at <= now() - COVERED_SECONDS_MAX * 1_000;
}

/** Whether a line is dated further ahead of the audit than the allowed difference of clocks. */
export function isAhead(at: Millis, { clock, policy }: Pick<AuditContext, 'clock' | 'policy'>): boolean {
  const { maxSkewSeconds = SIGNATURE_AGES.defaults.maxSkewSeconds } = policy;
  return at > clock.now() + maxSkewSeconds * 1_000;
}

/** Compares contracts regardless of checksums. */
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

/** The hashes or addresses of a log by chamber or idea. All are remembered, each in about 27 bytes, and each subject in 16. */
export class Subjects {
  /** The index of each value's subject, from 1. */
  readonly #values = new UsedValues();
  readonly #chamberIds: number[] = [];
  /** The slots of ideas; 0 is the commitment. */
  readonly #slots: number[] = [];

  /** Remembers the first subject of the value, and returns it if it is a different one. */
  conflict(value: Hex, subject: Subject): Subject | undefined {
    const first = this.#values.add(fromHex(value), this.#placeOf(subject));
    return this.#otherThan(subject, first);
  }

  /** Returns the value's subject if it is a different one. */
  of(value: Hex, subject: Subject): Subject | undefined {
    return this.#otherThan(subject, this.#values.first(fromHex(value)));
  }

  /** Most values have the same subject as the one before them. */
  #placeOf({ chamberId, ideaId }: Subject): number {
    const slot = slotOf(ideaId);
    if (this.#chamberIds.at(-1) !== chamberId || this.#slots.at(-1) !== slot) {
      this.#chamberIds.push(chamberId);
      this.#slots.push(slot);
    }
    return this.#slots.length;
  }

  #otherThan(subject: Subject, place: number | undefined): Subject | undefined {
    if (place === undefined) return undefined;
    const [chamberId = 0, slot = 0] = [this.#chamberIds[place - 1], this.#slots[place - 1]];
    if (chamberId === subject.chamberId && slot === slotOf(subject.ideaId)) return undefined;
    return { chamberId, ideaId: slot === 0 ? undefined : `idea-${slot}` };
  }
}

/** Service events with other ids were rejected by their rules. */
function slotOf(ideaId = 'idea-0'): number {
  return Number(ideaId.slice('idea-'.length));
}

/** A block's hash covers its height, so a hash with two heights is forged. */
export class BlockHeights {
  /** The index of each hash's height, from 1. */
  readonly #values = new UsedValues();
  readonly #heights: number[] = [];

  problemOf({ blockNumber, blockHash }: BlockReference): string | undefined {
    const place = this.#values.add(fromHex(blockHash), this.#heights.length + 1);
    if (place === undefined) this.#heights.push(blockNumber);
    const first = place === undefined ? blockNumber : this.#heights[place - 1];
    return first === blockNumber
      ? undefined
      : `names ${blockHash} as block ${blockNumber}, and another line as block ${first}`;
  }
}

const NAMED_MAX = 3;
/** Bounds the memory for a log that names a new address in every line. */
const FOUND_MAX = 100;

/** Addresses of one kind that a log names: the caller states those of the service, or there must be only one. */
export class Candidates {
  readonly #kind: string;
  readonly #option: string;
  readonly #given: ReadonlySet<string>;
  readonly #others: Candidates | undefined;
  readonly #found = new Set<string>();

  /** `others` are addresses of another kind. */
  constructor(kind: string, option: string, given: readonly string[] = [], others?: Candidates) {
    this.#others = others;
    this.#kind = kind;
    this.#option = option;
    this.#given = new Set(given);
  }

  /**
   * Records the address, unless it is known to be of another kind. Returns false for that, and for an address that is not among those
   * that the caller specified.
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

  /** The stated ones, otherwise those found. */
  get all(): readonly string[] {
    return [...(this.#given.size > 0 ? this.#given : this.#found)];
  }

  /** The question for the caller if several addresses are possible. */
  get doubt(): string | undefined {
    if (this.#given.size > 0 || this.#found.size < 2) return undefined;
    return `the log names ${this.#found.size} ${this.#kind} (${this.list}): name the service’s with ${this.#option}`;
  }

  get list(): string {
    const { all } = this;
    return all.slice(0, NAMED_MAX).join(', ') + (all.length > NAMED_MAX ? ' …' : '');
  }
}
