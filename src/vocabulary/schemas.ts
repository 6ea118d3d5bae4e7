// Valibot schemas for values shared by bodies, payloads and responses. Each message completes "<path>: ".
import * as v from 'valibot';
import { toChecksumAddress } from './checksum-address.ts';
import { suggestion } from './suggestion.ts';
import {
  BPS_TOTAL,
  DATE_TIME,
  DEADLINES,
  type Deadlines,
  type Hex,
  instantOf,
  type JsonObject,
  type JsonValue,
  toTimestamp,
  withCommas,
} from './values.ts';

export const NAME_CHARS_MAX = 120;
export const LABEL_CHARS_MAX = 64;
export const TEXT_CHARS_MAX = 8192;
export const REFINEMENT_DEPTH_MAX = 16;
export const SALT_BYTES_MIN = 16;
export const SALT_BYTES_MAX = 64;

export function integer(min: number, max: number, note = '') {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  const message = `must be an integer ${range}${note}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
}

export function characters(min: number, max: number) {
  const message = `must be a string of ${min} to ${withCommas(max)} characters`;
  return v.pipe(v.string(message), v.minLength(min, message), v.maxLength(max, message));
}

/** 0x-prefixed hexadecimal in any case, kept as sent. */
export function hexString(pattern: RegExp, message: string) {
  return v.pipe(v.string(message), v.regex(pattern, message)) as v.GenericSchema<string, Hex>;
}

/** Further unknown members are only counted, because naming thousands would take longer than the rest of the request. */
const UNKNOWN_NAMED_MAX = 16;

/** An object with exactly these members. Reports every unknown (including `__proto__`), invalid and missing member by name. */
export function exactly<Entries extends v.ObjectEntries>(entries: Entries) {
  const known = v.object(entries);
  return v.pipe(
    v.custom<v.InferInput<typeof known>>(isPlainObject, 'must be an object'),
    v.rawCheck(({ dataset, config, addIssue }) => {
      if (!dataset.typed) return;
      const unknown = Object.keys(dataset.value).filter((name) => !Object.hasOwn(entries, name));
      if (unknown.length === 0) return;
      const list = Object.keys(entries).join(', ') || 'none';
      for (const name of unknown.slice(0, UNKNOWN_NAMED_MAX)) {
        const hint = suggestion(name, Object.keys(entries));
        addIssue({ message: `unknown member ${JSON.stringify(name)}; ${hint ?? `known: ${list}`}` });
      }
      const more = unknown.length - UNKNOWN_NAMED_MAX;
      if (more > 0) addIssue({ message: `${more} more unknown members` });
      // A pipe stops at its first item with issues, so the known members are checked here.
      const { issues = [] } = v.safeParse(known, dataset.value, {
        abortEarly: config.abortEarly === true,
        abortPipeEarly: true,
      });
      for (const issue of issues) addIssue(issue as Parameters<typeof addIssue>[0]);
    }),
    known,
  );
}

export function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const DATE_TIME_MESSAGE =
  'must be an RFC 3339 date-time with seconds and an offset, e.g. 2030-01-31T12:00:00Z or 2030-01-31T13:00:00.5+01:00';
const DATE_MESSAGE = 'must be a real calendar date and time; second 60 is not accepted';
const YEAR_9999_END = Date.UTC(10_000, 0);

/** A timestamp as sent: RFC 3339 with any offset and any number of fraction digits. */
export const sentDateTime = v.pipe(
  v.string(DATE_TIME_MESSAGE),
  v.regex(DATE_TIME, DATE_TIME_MESSAGE),
  v.check(isCalendarDate, DATE_MESSAGE),
  v.check(
    (text) => instantOf(text) >= 0 && instantOf(text) < YEAR_9999_END,
    'must be in the years 1970 to 9999 in UTC',
  ),
  v.metadata({ format: 'date-time' }),
);
/** The same, converted to UTC and truncated to milliseconds. */
export const sentTimestamp = v.pipe(
  sentDateTime,
  v.transform((text) => toTimestamp(instantOf(text))),
);

function isCalendarDate(text: string): boolean {
  return !Number.isNaN(instantOf(text));
}

const strings = v.array(v.string('must be a string'), 'must be an array of strings');

export const personality = personalityOf(strings, v.string('must be a string'));

function personalityOf(list: v.GenericSchema<string[]>, style: v.GenericSchema<string>) {
  const lists = { loves: v.exactOptional(list), hates: v.exactOptional(list), expertise: v.exactOptional(list) };
  return exactly({ ...lists, style: v.exactOptional(style) });
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** Whether the text is an EVM address in one case, or in mixed case with a valid checksum (EIP-55). */
export function isWalletAddress(text: string): text is Hex {
  if (!ADDRESS.test(text)) return false;
  const digits = text.slice(2);
  const isOneCase = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  return isOneCase || text === toChecksumAddress(text);
}

export const PERSONALITY_STRINGS_MAX = 64;
export const PERSONALITY_STRING_CHARS_MAX = 256;
export const STYLE_CHARS_MAX = 2048;

const sentStrings = v.pipe(
  v.array(characters(1, PERSONALITY_STRING_CHARS_MAX), 'must be an array of strings'),
  v.maxLength(PERSONALITY_STRINGS_MAX, `must contain at most ${PERSONALITY_STRINGS_MAX} strings`),
);

/** A personality in new requests. Earlier releases accepted any length. */
export const sentPersonality = personalityOf(sentStrings, characters(0, STYLE_CHARS_MAX));

const CHECKSUM_MESSAGE = 'must have a valid EIP-55 checksum if its case is mixed';
const ADDRESS_MESSAGE = 'must be an EVM address: 0x and 40 hex digits';
export const walletAddress = v.pipe(
  v.string(ADDRESS_MESSAGE),
  v.regex(ADDRESS, ADDRESS_MESSAGE),
  v.check(isWalletAddress, CHECKSUM_MESSAGE),
);

export const refinement = v.pipe(
  v.custom<JsonObject>(isPlainObject, 'must be an object'),
  v.check((value) => depthOf(value) <= REFINEMENT_DEPTH_MAX, `must be at most ${REFINEMENT_DEPTH_MAX} levels deep`),
);

function depthOf(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Object.values(value).reduce((deepest: number, member: JsonValue) => Math.max(deepest, depthOf(member)), 0);
}

// The exact forms that the service writes in events and responses.

export const DID = /^did:key:z6Mk[1-9A-HJ-NP-Za-km-z]{44}$/;
export const did = v.pipe(v.string(), v.regex(DID), v.description('did:key of an Ed25519 public key'));
export const hash = (description: string) => described(/^0x[0-9a-f]{64}$/, description);
export const sentHash = (description: string) => described(/^0x[0-9a-fA-F]{64}$/, description);
export const bytes = (description: string) => described(/^0x([0-9a-fA-F]{2})+$/, description);

export function described(pattern: RegExp, description: string): v.GenericSchema<Hex> {
  return v.pipe(v.string(), v.regex(pattern), v.description(description)) as v.GenericSchema<
    string,
    Hex
  > as v.GenericSchema<Hex>;
}

export const timestamp = v.pipe(
  v.string(),
  v.regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
  v.check(isCalendarDate, DATE_MESSAGE),
  v.metadata({ format: 'date-time', description: 'ISO 8601 UTC with milliseconds' }),
);
export const address = v.pipe(
  v.string(),
  v.regex(ADDRESS),
  v.check(isWalletAddress, CHECKSUM_MESSAGE),
  v.description('EVM address'),
);
export const label = v.pipe(v.string(), v.minLength(1), v.maxLength(LABEL_CHARS_MAX));
export const count = v.pipe(v.number(), v.integer(), v.minValue(0));
export const id = v.pipe(v.number(), v.integer(), v.minValue(1));
export const ideaId = v.pipe(v.string(), v.regex(/^idea-[1-9]\d*$/), v.description('unique in its chamber'));
export const allocation = v.strictObject({
  ideaId,
  bps: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(BPS_TOTAL), v.description('basis points')),
});
export const deadlines: v.GenericSchema<Deadlines> = v.strictObject(v.entriesFromList(DEADLINES, timestamp));
