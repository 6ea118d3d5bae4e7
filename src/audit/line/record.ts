// Parses a line to an event record. The bytes must be the record's canonical form, and the members must match the schema of the
// event's type.
import * as v from 'valibot';
import { accountRecordSchemas, readableSchemas } from '../../moves/records.ts';
import { READ_LIMITS } from '../../reading/limits.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { AccountEvent, ChamberEvent, ForumEvent } from '../../vocabulary/events.ts';
import { canonicalJson, parseJson } from '../../vocabulary/json.ts';
import { isPlainObject } from '../../vocabulary/schemas.ts';
import { missingMember } from '../../vocabulary/texts.ts';
import type { JsonValue } from '../../vocabulary/values.ts';
import type { RawLine } from './input.ts';

export interface LineRecord<Event = ChamberEvent> {
  /** Absent if the line is not an event. */
  readonly event?: Event;
  readonly problem?: string;
}

// A byte order mark counts as part of the line.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function readRecord(line: RawLine): LineRecord {
  return read(line, schemas);
}

export function readAccountRecord(line: RawLine): LineRecord<AccountEvent> {
  return read(line, accountRecordSchemas);
}

/** Reads a line of a chamber or an account. */
export function readAny(line: RawLine): LineRecord<ForumEvent> {
  const chamberRecord = readRecord(line);
  return chamberRecord.event === undefined ? readAccountRecord(line) : chamberRecord;
}

type Schemas = Readonly<Record<string, v.GenericSchema>>;

function read<Event>({ bytes, isEnded }: RawLine, known: Schemas): LineRecord<Event> {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { problem: 'is not UTF-8' };
  }
  try {
    return toRecord(text, parseJson(text, READ_LIMITS.jsonValuesMax, 'line'), known);
  } catch (error) {
    if (!(error instanceof ForumError)) throw error;
    if (!isEnded) return { problem: 'is torn: the input ends within it' };
    if (error.cause instanceof SyntaxError) return { problem: text === '' ? 'is empty' : 'is not JSON' };
    return { problem: `is JSON that event records can’t contain: ${error.message}` };
  }
}

function toRecord<Event>(text: string, value: JsonValue, known: Schemas): LineRecord<Event> {
  if (!isPlainObject(value)) return { problem: 'is not a JSON object' };
  const { type } = value as { readonly type?: unknown };
  const schema = typeof type === 'string' && Object.hasOwn(known, type) && known[type];
  if (!schema) return { problem: typeProblem(type) };
  const result = v.safeParse(schema, value, { abortPipeEarly: true });
  if (!result.success) return { problem: issueProblem(result.issues[0]) };
  // The schema matches the type, which TypeScript can't infer from a lookup table.
  const event = result.output as Event;
  const { payload, withheld } = event as ForumEvent;
  const missing = withheld === undefined ? missingMember(type as string, payload) : undefined;
  if (missing !== undefined) return { problem: `lacks payload.${missing}` };
  if (!isCanonical(value, text)) return { event, problem: 'is not in canonical form (RFC 8785)' };
  // Schemas silently drop some members, such as `constructor`.
  if (JSON.stringify(event).length !== text.length)
    return { event, problem: 'has a member that event records can’t have' };
  return { event };
}

/** Whether `text` equals canonicalJson(value). Calls it only if needed, because it takes three times as long as JSON.stringify. */
function isCanonical(value: JsonValue, text: string): boolean {
  return (isSorted(value) && JSON.stringify(value) === text) || canonicalJson(value) === text;
}

function isSorted(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  let last = '';
  const isArray = Array.isArray(value);
  for (const name of Object.keys(value)) {
    if (!isArray && name < last) return false;
    last = name;
    if (!isSorted((value as Readonly<Record<string, unknown>>)[name])) return false;
  }
  return true;
}

// Malformed DIDs and evidence are accepted here: the evidence checks report them.
const schemas = readableSchemas();

function typeProblem(type: unknown): string {
  if (typeof type !== 'string') return 'has no type: it is not an event record';
  if (type.startsWith('agent.')) return `is of type ${type}: it belongs to an agent’s account, not to a chamber`;
  return `is of the unknown type ${JSON.stringify(type.slice(0, 60))}`;
}

function issueProblem(issue: v.BaseIssue<unknown>): string {
  const path = (issue.path ?? []).map(({ key }) => String(key)).join('.');
  if (issue.received === 'undefined') return `lacks ${path}`;
  if (issue.expected === 'never') return `has the unknown member ${path}`;
  return `has an invalid ${path}: ${issue.expected === null ? issue.message : `expected ${issue.expected}`}`;
}
