// Value types shared by commands, events and views, for Node and browsers.
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';

/** 0x-prefixed lower-case hexadecimal. */
export type Hex = `0x${string}`;

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Millis = number;

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** `prev` of the first event of a stream. */
export const NO_PREVIOUS: Hex = `0x${'0'.repeat(64)}`;

/** The id of a log: 32 hex digits. */
export const LOG_ID = /^[0-9a-f]{32}$/;

export const PHASES = ['LOBBY', 'PROPOSAL', 'DEBATE', 'ALLOCATE_COMMIT', 'ALLOCATE_REVEAL', 'COMMITTED'] as const;
export type Phase = (typeof PHASES)[number];

export function isPhase(text: string): text is Phase {
  return (PHASES as readonly string[]).includes(text);
}

/** The accepted age and clock skew of signatures: the defaults, and the maximum that can be configured. */
export const SIGNATURE_AGES = {
  defaults: { maxAgeSeconds: 300, maxSkewSeconds: 60 },
  caps: { maxAgeSeconds: 86_400, maxSkewSeconds: 600 },
} as const;

/** The service promises that a checkpoint covers a line within this time after its `ts`. */
export const COVERED_SECONDS_MAX = 60;

/** The deadlines of a chamber, in the order of the phases that they end. */
export const DEADLINES = [
  'lobbyDeadline',
  'proposalDeadline',
  'debateDeadline',
  'allocateCommitDeadline',
  'allocateRevealDeadline',
] as const;
export type DeadlineName = (typeof DEADLINES)[number];
/** ISO 8601 UTC timestamps with milliseconds. */
export type Deadlines = Readonly<Record<DeadlineName, string>>;

/** The number of turns of each member in a phase. A chamber with rounds may end these phases early. */
export type Rounds = { readonly proposal: number; readonly debate: number };

/** A block of the service's chain. */
export interface BlockReference {
  readonly blockNumber: number;
  readonly blockHash: Hex;
}

/** The rules for joining a chamber. All rules that are present must hold. */
export type Admission = {
  /** Only these agents may join; the creator can add more while the chamber is in LOBBY. */
  readonly dids?: readonly string[];
  /** Only agents with a proven wallet may join, and each wallet has one seat. */
  readonly provenWallets?: true;
  /** The proven wallet must hold at least this balance of a token; implies provenWallets. */
  readonly token?: TokenRule;
};
export type TokenRule = {
  /** The address of an ERC-20 or ERC-721 contract. */
  readonly address: string;
  /** A decimal integer of at most 256 bits. */
  readonly minBalance: string;
  /** The block of the balance: the newest one at the join, or at the chamber's creation. */
  readonly at: 'join' | 'creation';
};

export const ADMISSION_RULES = ['dids', 'provenWallets', 'token'] as const satisfies readonly (keyof Admission)[];
export type AdmissionRule = (typeof ADMISSION_RULES)[number];

export interface Personality {
  readonly loves?: readonly string[];
  readonly hates?: readonly string[];
  readonly expertise?: readonly string[];
  readonly style?: string;
}

/** The thumbprints (RFC 7638) of the keys with which the service signs receipts and checkpoints. */
export interface PinnedKeys {
  readonly receipts: string;
  readonly checkpoints: string;
}

/** A member's stance on an idea in the straw poll before the blind commitment. */
export const STANCES = ['for', 'against', 'undecided'] as const;
export type Stance = (typeof STANCES)[number];

/** 100 % in basis points. */
export const BPS_TOTAL = 10_000;

/** One item of an allocation. `bps` are basis points, 0 to BPS_TOTAL. */
export interface Allocation {
  readonly ideaId: string;
  readonly bps: number;
}

/** Returns the same as Date.prototype.toISOString in half the time: a list of 100 chambers has 600 timestamps. */
export function toTimestamp(millis: Millis): string {
  const at = new Date(millis);
  const year = at.getUTCFullYear();
  if (!(year >= 1_000 && year <= 9_999)) return at.toISOString();
  const date = `${year}-${TWO_DIGITS[at.getUTCMonth() + 1]}-${TWO_DIGITS[at.getUTCDate()]}`;
  const time = `${TWO_DIGITS[at.getUTCHours()]}:${TWO_DIGITS[at.getUTCMinutes()]}:${TWO_DIGITS[at.getUTCSeconds()]}`;
  return `${date}T${time}.${THREE_DIGITS[at.getUTCMilliseconds()]}Z`;
}

const TWO_DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'));
const THREE_DIGITS = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'));

/** Matches an RFC 3339 date-time with seconds and an offset; instantOf checks the calendar. */
export const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

/** Date.UTC maps the years 0 to 99 to 1900 to 1999, so dates are shifted by 400 years, after which the calendar repeats. */
const CYCLE_YEARS = 400;
const CYCLE_MILLIS: Millis = 146_097 * 86_400_000;

/**
 * Parses an RFC 3339 date-time, truncated to milliseconds; NaN for any other text, nonexistent dates, hour 24 and second 60. All times
 * must be parsed here, because Date.parse accepts almost any text, some of it in the local time zone.
 */
export function instantOf(text: string): Millis {
  const [found, year, month, day, hour, minute, second, fraction = '', sign, ...offset] = DATE_TIME.exec(text) ?? [];
  if (found === undefined) return Number.NaN;
  const isTimeOfDay = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
  if (Number(month) < 1 || Number(month) > 12 || !isTimeOfDay) return Number.NaN;
  const millis = Number(fraction.slice(0, 3).padEnd(3, '0'));
  const date = [Number(year) + CYCLE_YEARS, Number(month) - 1, Number(day)] as const;
  const local = Date.UTC(...date, Number(hour), Number(minute), Number(second), millis) - CYCLE_MILLIS;
  if (new Date(local).getUTCDate() !== Number(day)) return Number.NaN;
  const [hours = 0, minutes = 0] = offset.map((digits) => Number(digits ?? 0));
  return local - (sign === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

/** Returns the bytes as 0x-prefixed lowercase hexadecimal. */
export function toHex(bytes: Uint8Array): Hex {
  return `0x${bytesToHex(bytes)}`;
}

/** Parses 0x-prefixed hexadecimal in any case; throws a RangeError for other text. */
export function fromHex(hex: string): Uint8Array {
  if (!hex.startsWith('0x')) throw new RangeError('hexadecimal must start with 0x');
  return hexToBytes(hex.slice(2));
}

/** Formats an integer like toLocaleString('en'), whose first call takes 50 ms to load ICU. */
export function withCommas(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}
