// The list of texts to withhold: one event per line, `<chamberId or DID>:<eventId> <reason>`; # starts a comment.
import { parseDid } from '../crypto/did-key.ts';
import { editListFile, listLines, readListFile, withLine } from '../files/list-file.ts';
import type { StreamId } from '../log/stream-id.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { WITHHOLD_REASONS, type WithholdReason } from '../vocabulary/withheld.ts';

export interface NamedEvent {
  readonly stream: StreamId;
  readonly eventId: number;
}

export interface ListEntry extends NamedEvent {
  readonly reason: WithholdReason;
  /** The line number in the file. */
  readonly line: number;
}

/** A line that is not a valid entry. */
export interface BadLine {
  readonly line: number;
  /** Does not name the file or the line. */
  readonly problem: string;
}

export interface WithholdList {
  readonly entries: readonly ListEntry[];
  readonly badLines: readonly BadLine[];
}

/** Throws an Error with a one-line message if the file can't be read. */
export function readWithholdList(path: string): WithholdList {
  return parseWithholdList(readListFile(path, { name: 'list of texts to withhold', remedy: MISSING }));
}

const MISSING = '; create an empty file, or add to it with chambers admin withhold';

export function parseWithholdList(text: string): WithholdList {
  const entries = new Map<string, ListEntry>();
  const badLines: BadLine[] = [];
  for (const { number: line, text: entry } of listLines(text)) {
    const read = readEntry(entry);
    const earlier = typeof read === 'string' ? undefined : entries.get(nameOf(read));
    if (typeof read === 'string') badLines.push({ line, problem: read });
    else if (earlier !== undefined) {
      badLines.push({ line, problem: `${nameOf(read)} is already on line ${earlier.line}, which counts` });
    } else entries.set(nameOf(read), { ...read, line });
  }
  return { entries: [...entries.values()], badLines };
}

/** Returns the entry, or a string that says why the text is not one. */
function readEntry(text: string): Omit<ListEntry, 'line'> | string {
  const [name = '', reason = '', ...more] = text.split(/\s+/);
  const event = parseEventName(name);
  if (event === undefined || more.length > 0) return 'must be <chamberId or DID>:<eventId> <reason>';
  if (!isReason(reason)) return `the reason must be one of ${WITHHOLD_REASONS.join(', ')}`;
  return { ...event, reason };
}

/** Reads `<chamberId or DID>:<eventId>`; a DID contains colons. */
export function parseEventName(name: string): NamedEvent | undefined {
  const colon = name.lastIndexOf(':');
  const stream = parseStream(name.slice(0, Math.max(0, colon)));
  const eventId = parseId(name.slice(colon + 1));
  return stream === undefined || eventId === undefined ? undefined : { stream, eventId };
}

export function parseStream(text: string): StreamId | undefined {
  return parseDid(text) === undefined ? parseId(text) : text;
}

export function isReason(text: string): text is WithholdReason {
  return WITHHOLD_REASONS.some((reason) => reason === text);
}

/** Returns `<chamberId or DID>:<eventId>`. */
export function nameOf({ stream, eventId }: NamedEvent): string {
  return `${stream}:${eventId}`;
}

/** Formats an entry as in the list. */
export function toText(entry: NamedEvent & Pick<ListEntry, 'reason'>): string {
  return `${nameOf(entry)} ${entry.reason}`;
}

export interface ListEdit {
  /** The names of the events that were not in the list yet. */
  readonly added: readonly string[];
  /** The existing entries of the other events, which keep their reasons. */
  readonly listed: readonly ListEntry[];
}

/** Adds the events that are not in the list yet. Creates a missing file. Errors have one-line messages. */
export async function addToWithholdList(
  path: string,
  events: readonly NamedEvent[],
  reason: WithholdReason,
): Promise<ListEdit> {
  const [added, listed] = [new Set<string>(), new Set<ListEntry>()];
  await editListFile(path, (found = '') => {
    const entries = new Map(parseWithholdList(found).entries.map((entry) => [nameOf(entry), entry]));
    let text = found;
    for (const event of events) {
      const earlier = entries.get(nameOf(event));
      if (earlier !== undefined) listed.add(earlier);
      else if (!added.has(nameOf(event))) {
        added.add(nameOf(event));
        text = withLine(text, toText({ ...event, reason }));
      }
    }
    return added.size === 0 ? undefined : text;
  });
  return { added: [...added], listed: [...listed] };
}
