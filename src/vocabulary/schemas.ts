// The bodies of the commands as valibot schemas: validation and the published API description are made from these.
import * as v from 'valibot';
import type { Hex, JsonObject, JsonValue } from './values.ts';
import { toTimestamp } from './values.ts';
import { isWalletAddress } from './wallet-address.ts';

export const NAME_CHARS_MAX = 120;
export const TEXT_CHARS_MAX = 8192;
export const EMAIL_CHARS_MAX = 254;
export const BPS_TOTAL = 10_000;
export const REFINEMENT_DEPTH_MAX = 16;
export const SALT_BYTES_MIN = 16;
export const SALT_BYTES_MAX = 64;
export const TURN_SECONDS_MAX = 31_536_000;

const integer = (message: string, min: number, max: number) =>
  v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));

const characters = (min: number, max: number) => {
  const message = `must be a string of ${min} to ${max.toLocaleString('en')} characters`;
  return v.pipe(v.string(message), v.minLength(min, message), v.maxLength(max, message));
};

const hex = (pattern: RegExp, message: string) =>
  v.pipe(v.string(message), v.regex(pattern, message)) as v.GenericSchema<string, Hex>;

/** An object of exactly these members; any other own member, `__proto__` too, is refused by name. */
const exactly = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.pipe(
    v.custom<v.InferInput<v.ObjectSchema<Entries, undefined>>>(isPlainObject, 'must be an object'),
    v.rawCheck(({ dataset, addIssue }) => {
      if (!dataset.typed) return;
      const stranger = Object.keys(dataset.value).find((name) => !Object.hasOwn(entries, name));
      if (stranger === undefined) return;
      addIssue({ message: `unknown member ${JSON.stringify(stranger)}; known: ${Object.keys(entries).join(', ')}` });
    }),
    v.object(entries),
  );

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$/;

/** RFC 3339 in UTC, a date of the calendar, at most milliseconds; the output has milliseconds. */
const timestamp = v.pipe(
  v.string('must be an RFC 3339 timestamp in UTC, e.g. 2030-01-31T12:00:00.000Z'),
  v.regex(TIMESTAMP, 'must be an RFC 3339 timestamp in UTC, e.g. 2030-01-31T12:00:00.000Z'),
  v.check(isCalendarDate, 'must have a real calendar date and time'),
  v.metadata({ format: 'date-time' }),
  v.transform((text) => toTimestamp(Date.parse(text))),
);

function isCalendarDate(text: string): boolean {
  const millis = Date.parse(text);
  return Number.isFinite(millis) && toTimestamp(millis).startsWith(text.slice(0, 19));
}

const strings = v.array(v.string('must be a string'), 'must be an array of strings');
const personality = exactly({
  loves: v.exactOptional(strings),
  hates: v.exactOptional(strings),
  expertise: v.exactOptional(strings),
  style: v.exactOptional(v.string('must be a string')),
});

const address = v.pipe(
  v.string('must be an EVM address: 0x and 40 hex digits'),
  v.regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address: 0x and 40 hex digits'),
  v.check(isWalletAddress, 'must have a right EIP-55 checksum where its case is mixed'),
);

const refinement = v.pipe(
  v.custom<JsonObject>(isPlainObject, 'must be an object'),
  v.check((value) => depthOf(value) <= REFINEMENT_DEPTH_MAX, `must be at most ${REFINEMENT_DEPTH_MAX} levels deep`),
);

function depthOf(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce((deepest: number, member: JsonValue) => Math.max(deepest, depthOf(member)), 0);
}

const bps = integer(`must be an integer from 0 to ${BPS_TOTAL}`, 0, BPS_TOTAL);
const allocations = v.pipe(
  v.array(exactly({ ideaId: characters(1, NAME_CHARS_MAX), bps }), 'must be an array of { ideaId, bps }'),
  v.check((items) => new Set(items.map((item) => item.ideaId)).size === items.length, 'must name each idea once'),
  v.check(
    (items) => items.reduce((sum, item) => sum + item.bps, 0) <= BPS_TOTAL,
    `must not add up to more than ${BPS_TOTAL} bps`,
  ),
);

/** What rfcEmail, HTML's definition, leaves out: no part of the name is empty, and the domain ends in a top-level one. */
const EMAIL_PARTS = /^[^.@]+(\.[^.@]+)*@.+\.[A-Za-z][A-Za-z0-9-]+$/;

const SALT = new RegExp(`^0x([0-9a-fA-F]{2}){${SALT_BYTES_MIN},${SALT_BYTES_MAX}}$`);
const optionalBody = exactly({});

export const bodySchemas = {
  register: exactly({
    pubkeyHex: hex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex digits: a 32-byte Ed25519 public key'),
    walletAddress: address,
    operatorEmail: v.pipe(
      v.string('must be an e-mail address'),
      v.rfcEmail('must be an e-mail address'),
      v.regex(EMAIL_PARTS, 'must be an e-mail address'),
      v.maxLength(EMAIL_CHARS_MAX, `must have at most ${EMAIL_CHARS_MAX} characters`),
    ),
    personality,
  }),
  changePersonality: exactly({ patch: personality }),
  createChamber: exactly({
    name: characters(1, NAME_CHARS_MAX),
    lobbyDeadline: timestamp,
    proposalDeadline: timestamp,
    debateDeadline: timestamp,
    allocateCommitDeadline: timestamp,
    allocateRevealDeadline: timestamp,
    minBackersForGraduation: v.optional(integer('must be an integer of at least 1', 1, Number.MAX_SAFE_INTEGER), 1),
    turnSeconds: v.exactOptional(
      integer(`must be an integer from 1 to ${TURN_SECONDS_MAX}: seconds a turn lasts`, 1, TURN_SECONDS_MAX),
    ),
  }),
  join: optionalBody,
  propose: exactly({
    name: characters(1, NAME_CHARS_MAX),
    ticker: v.pipe(
      v.string('must be a string'),
      v.regex(/^[A-Za-z0-9_.-]{1,32}$/, 'must be 1 to 32 characters of A–Z a–z 0–9 _ . -'),
    ),
    description: v.optional(characters(0, TEXT_CHARS_MAX), ''),
  }),
  debate: exactly({
    ideaId: v.optional(v.nullable(v.string('must be a string or null')), null),
    comment: characters(1, TEXT_CHARS_MAX),
    refinement: v.exactOptional(refinement),
  }),
  pass: optionalBody,
  commit: exactly({
    commitment: hex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex digits: a keccak256 hash'),
  }),
  reveal: exactly({
    allocations,
    salt: hex(SALT, `must be 0x and hex digits for ${SALT_BYTES_MIN} to ${SALT_BYTES_MAX} bytes`),
  }),
} as const;
