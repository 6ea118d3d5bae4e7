// The values that commands, events and views are made of, in Node and browsers alike.
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

/** How old, and how far in the future, an accepted signature may be: the defaults, and the caps on what can be configured. */
export const SIGNATURE_AGES = {
  defaults: { maxAgeSeconds: 300, maxSkewSeconds: 60 },
  caps: { maxAgeSeconds: 86_400, maxSkewSeconds: 600 },
} as const;

/** The service promises that a line is under a checkpoint within this time of its `ts`. */
export const COVERED_SECONDS_MAX = 60;

/** The five deadlines of a chamber, in the order of the phases that they end. */
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

/** How many turns each member has in the phases that have turns; such a chamber ends phases early. */
export type Rounds = { readonly proposal: number; readonly debate: number };

/** A block of the service's chain. */
export interface BlockReference {
  readonly blockNumber: number;
  readonly blockHash: Hex;
}

/** Who may join a chamber: all rules that are given must hold; one that is not given does not restrict. */
export type Admission = {
  /** Only these agents may join; the creator adds more while the chamber is in LOBBY. */
  readonly dids?: readonly string[];
  /** Only agents with a proven wallet may join, and each wallet has one seat. */
  readonly provenWallets?: true;
  /** The proven wallet must hold so much of a token; implies provenWallets. */
  readonly token?: TokenRule;
};
export type TokenRule = {
  /** The address of an ERC-20 or ERC-721 contract. */
  readonly address: string;
  /** A decimal integer of at most 256 bits. */
  readonly minBalance: string;
  /** The block that counts: the newest one of the join, or of the chamber's creation. */
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

/** What a member thinks of an idea, for now: the straw poll before the blind commitment. */
export const STANCES = ['for', 'against', 'undecided'] as const;
export type Stance = (typeof STANCES)[number];

/** The whole, in basis points. */
export const BPS_TOTAL = 10_000;

/** One line of an allocation: `bps` are basis points, 0 to BPS_TOTAL. */
export interface Allocation {
  readonly ideaId: string;
  readonly bps: number;
}

/** Writes what Date.prototype.toISOString does, which takes twice as long: a list of 100 chambers has 600 timestamps. */
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

/** An RFC 3339 date-time with seconds and an offset. Which of them are of the calendar, instantOf says. */
export const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

/** Date.UTC takes the years 0 to 99 for those from 1900 on; the calendar repeats itself after 400 years. */
const CYCLE_YEARS = 400;
const CYCLE_MILLIS: Millis = 146_097 * 86_400_000;

/**
 * The instant of an RFC 3339 date-time, cut to milliseconds; NaN for any other text, a day that no calendar has, hour 24 and second 60.
 * Everything that is read as a time goes through here: Date.parse accepts almost any text, some of it in the time zone of the machine.
 */
export function instantOf(text: string): Millis {
  const [found, year, month, day, hour, minute, second, fraction = '', sign, ...offset] = DATE_TIME.exec(text) ?? [];
  if (found === undefined) return Number.NaN;
  const isOfDay = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
  if (Number(month) < 1 || Number(month) > 12 || !isOfDay) return Number.NaN;
  const millis = Number(fraction.slice(0, 3).padEnd(3, '0'));
  const date = [Number(year) + CYCLE_YEARS, Number(month) - 1, Number(day)] as const;
  const local = Date.UTC(...date, Number(hour), Number(minute), Number(second), millis) - CYCLE_MILLIS;
  if (new Date(local).getUTCDate() !== Number(day)) return Number.NaN;
  const [hours = 0, minutes = 0] = offset.map((digits) => Number(digits ?? 0));
  return local - (sign === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

/** The bytes as lower-case hexadecimal with 0x in front. */
export function toHex(bytes: Uint8Array): Hex {
  return `0x${bytesToHex(bytes)}`;
}

/** The bytes of 0x-prefixed hexadecimal in any case; throws a RangeError on anything else. */
export function fromHex(hex: string): Uint8Array {
  if (!hex.startsWith('0x')) throw new RangeError('hexadecimal must start with 0x');
  return hexToBytes(hex.slice(2));
}

/** A whole number with commas between thousands, as toLocaleString('en') has it, whose first call loads 50 ms of ICU. */
export function withCommas(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}
