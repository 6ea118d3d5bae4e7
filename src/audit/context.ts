// What the chambers of one log share in an audit, and what only its caller can decide: limits, addresses, unsigned moves.

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
import { UsedValues } from './line/used-values.ts';
import type { Verify } from './line/verify.ts';
import type { AuditPolicy } from './policy.ts';
import type { Outcome } from './report/findings.ts';
import type { ReportedCheck } from './report/report-types.ts';

/** The time of the audit. */
export interface AuditClock {
  readonly now: () => Millis;
  /** Whether even a log that begins after it is judged by it: its lines were read from a service, or the caller gave the time. */
  readonly isStated: boolean;
}

const MACHINE_CLOCK: AuditClock = { now: () => Date.now(), isStated: false };

export interface AuditContext {
  readonly policy: AuditPolicy;
  readonly verify: Verify;
  readonly clock: AuditClock;
  /** The signatures of creations: their requests name no chamber, so none may occur in two chambers of one log. */
  readonly creations: UsedValues;
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
  /** What each nonce of each account was signed for. */
  readonly nonces: Subjects;
  /** The idea that has a token. */
  readonly tokens: Subjects;
  /** The blocks that lines name, by their hashes. */
  readonly blocks: BlockHeights;
  /** Outcomes of checks that chambers have in common, which their reports share. */
  readonly outcomes: Map<string, ReportedCheck>;
  /** What the chain said of them: chambers have members in common. */
  readonly contractProofs: WeakMap<ContractProof, Outcome>;
}

export function auditContext(
  policy: AuditPolicy = {},
  verify: Verify = isSignedBy,
  clock: AuditClock = MACHINE_CLOCK,
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
  };
}

/** For another pass over the same lines: nothing is read yet. Keys are decoded already. */
export function contextOfRerun({ policy, verify, keys, clock }: AuditContext): AuditContext {
  return { ...auditContext(policy, verify, clock), keys };
}

/** Whether a line is so old that a checkpoint has to cover it. */
export function isDue(at: Millis, { now }: Pick<AuditClock, 'now'>): boolean {
  return at <= now() - COVERED_SECONDS_MAX * 1_000;
}

/** Whether a line is dated further ahead of the audit than clocks may be apart. */
export function isAhead(at: Millis, { clock, policy }: Pick<AuditContext, 'clock' | 'policy'>): boolean {
  const { maxSkewSeconds = SIGNATURE_AGES.defaults.maxSkewSeconds } = policy;
  return at > clock.now() + maxSkewSeconds * 1_000;
}

/** Contracts are compared without regard to checksums. */
export function lowerCase<Address extends string>(address: Address): Lowercase<Address> {
  return address.toLowerCase() as Lowercase<Address>;
}

/** What a transaction or a token is for: an idea of a chamber, or, without one, the chamber's commitment. */
export interface Subject {
  readonly chamberId: number;
  readonly ideaId: string | undefined;
}

export function nameOf({ chamberId, ideaId }: Subject): string {
  return `${ideaId ?? 'the commitment'} of chamber ${chamberId}`;
}

/** The hashes or addresses of a log, and to which chamber or idea each belongs. None is forgotten; each takes about 27 bytes, and each subject 16. */
export class Subjects {
  /** The place of the subject of each value, from 1. */
  readonly #values = new UsedValues();
  readonly #chamberIds: number[] = [];
  /** The slots of ideas, 0 for the commitment. */
  readonly #slots: number[] = [];

  /** Keeps the first subject of the value, and returns it if it is another one. */
  conflict(value: Hex, subject: Subject): Subject | undefined {
    const first = this.#values.add(fromHex(value), this.#placeOf(subject));
    return this.#otherThan(subject, first);
  }

  /** The value's subject if it is another one. */
  of(value: Hex, subject: Subject): Subject | undefined {
    return this.#otherThan(subject, this.#values.first(fromHex(value)));
  }

  /** Values of one subject mostly follow each other. */
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

/** The rules of service events know no idea of another form. */
function slotOf(ideaId = 'idea-0'): number {
  return Number(ideaId.slice('idea-'.length));
}

/** A block's hash covers its height, so that no chain has it at two. */
export class BlockHeights {
  /** The place of the height of each hash, from 1. */
  readonly #values = new UsedValues();
  readonly #heights: number[] = [];

  /** What is wrong with a line that names the block. */
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
/** A log that names another one in every line must not fill the memory. */
const FOUND_MAX = 100;

/** Addresses of one kind that a log names: those of the service are given, or there is only one. */
export class Candidates {
  readonly #kind: string;
  readonly #option: string;
  readonly #given: ReadonlySet<string>;
  readonly #others: Candidates | undefined;
  readonly #found = new Set<string>();

  /** Addresses of the `others` are none of these. */
  constructor(kind: string, option: string, given: readonly string[] = [], others?: Candidates) {
    this.#others = others;
    this.#kind = kind;
    this.#option = option;
    this.#given = new Set(given);
  }

  /** Notes the address; false where the service's are given and this is none of them, or it is of another kind. */
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
