// One line to one event record, or why it is none. The bytes must be exactly what the record's canonical form is.
import { isUtf8 } from 'node:buffer';
import { canonicalJson } from '../vocabulary/canonical-json.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { parseJson } from '../vocabulary/parse-json.ts';
import type { JsonValue } from '../vocabulary/values.ts';
import type { RawLine } from './line-reader.ts';
import { toChamberEvent } from './record-schema.ts';

export interface LineRecord {
  /** undefined where the line can't be read as an event. */
  readonly event: ChamberEvent | undefined;
  /** What is wrong with the form; undefined when nothing is. */
  readonly problem: string | undefined;
}

export function readRecord({ bytes, isEnded }: RawLine): LineRecord {
  if (!isUtf8(bytes)) return unreadable('is not UTF-8');
  const text = Buffer.from(bytes).toString();
  try {
    return toRecord(text, parseJson(text));
  } catch (error) {
    if (!(error instanceof ForumError)) throw error;
    return unreadable(isEnded ? `is no JSON line: ${error.message}` : 'is torn: the input ends within it');
  }
}

function toRecord(text: string, value: JsonValue): LineRecord {
  const verdict = toChamberEvent(value);
  if ('problem' in verdict) return unreadable(verdict.problem);
  const { event } = verdict;
  if (canonicalJson(value) !== text) return { event, problem: 'is not in canonical form (RFC 8785)' };
  // What a schema passes over in silence, such as a member called `constructor`, is missing from its output.
  const problem = canonicalJson(event) === text ? undefined : 'holds a member that event records do not have';
  return { event, problem };
}

function unreadable(problem: string): LineRecord {
  return { event: undefined, problem };
}
