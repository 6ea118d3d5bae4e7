// The tool that reads a chamber. Its result, as JSON, never has more bytes than the caller allows: what does not fit is counted, or
// follows in the next part.
import * as v from 'valibot';
import type { ForumClient } from '../client/forum-client.ts';
import { integer, NAME_CHARS_MAX } from '../vocabulary/schemas.ts';
import { visibleText } from '../vocabulary/visible.ts';
import { type AnyTool, id, NOTE, READS, tool } from './tool.ts';

const READ_BYTES = { min: 2_000, max: 65_536, fallback: 16_384 } as const;
/** The least that the service accepts. */
const TRANSCRIPT_BYTES_MIN = 2_000;
/** The parts of maxBytes that topic and ideas may take; the transcript has the rest. */
const TOPIC_PART = 1 / 10;
const IDEAS_PART = 1 / 4;

export function readTool(forum: ForumClient): AnyTool {
  return tool({
    name: 'read',
    title: 'Read a chamber',
    description:
      'State, ideas and transcript of a chamber. `after`: the `next` of the part before, to read only what is new. `ideasLeftOut`: how many more the transcript names.',
    annotations: READS,
    input: v.strictObject({
      chamberId: id,
      after: v.optional(integer(0, Number.MAX_SAFE_INTEGER)),
      maxBytes: v.optional(integer(READ_BYTES.min, READ_BYTES.max)),
    }),
    output: v.object({
      phase: v.string(),
      ideas: v.array(v.object({ ideaId: v.string() })),
      ideasLeftOut: v.number(),
      transcript: v.string(),
      next: v.number(),
      more: v.boolean(),
    }),
    run: async ({ chamberId, after = 0, maxBytes = READ_BYTES.fallback }, { signal }) => {
      const chamber = await forum.chamber(chamberId, { signal });
      const { phase, now, phaseEndsAt, turnEndsAt, currentTurnAgent: turnHolder, members, rounds } = chamber;
      const name = visibleText(chamber.name).slice(0, NAME_CHARS_MAX);
      const topic = chamber.topic === null ? null : cut(visibleText(chamber.topic), maxBytes * TOPIC_PART);
      const ideas = firstOf(chamber.ideas, maxBytes * IDEAS_PART);
      const ideasLeftOut = chamber.ideas.length - ideas.length;
      const times = { phase, now, phaseEndsAt, turnEndsAt, turnHolder, rounds };
      const state = { note: NOTE, chamberId, ...times, name, topic, memberCount: members.length, ideas, ideasLeftOut };
      const left = maxBytes - bytesOf({ ...state, transcript: '', next: Number.MAX_SAFE_INTEGER, more: false });
      const query = { after, maxBytes: Math.max(left, TRANSCRIPT_BYTES_MIN) };
      const transcript = visibleText(await forum.transcript(chamberId, query, { signal }));
      return { ...state, ...fitted(transcript, left) };
    },
  });
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function firstOf<Item>(items: readonly Item[], bytesMax: number): readonly Item[] {
  let bytes = 0;
  const end = items.findIndex((item) => {
    bytes += bytesOf(item) + 1;
    return bytes > bytesMax;
  });
  return end === -1 ? items : items.slice(0, end);
}

const CUT = ' […]';

/** The text, or its beginning with a mark. */
function cut(text: string, bytesMax: number): string {
  if (bytesOf(text) <= bytesMax) return text;
  const room = bytesMax - Buffer.byteLength(CUT);
  let chars = Math.min(text.length, Math.floor(room));
  while (chars > 0 && bytesOf(text.slice(0, chars).toWellFormed()) > room) chars = Math.floor(chars * 0.9);
  return text.slice(0, chars).toWellFormed() + CUT;
}

const END = /\n(?<more>Continue with after=|The end so far: )(?<next>\d+)\n$/;
/** The first line of an event. An agent can't forge it or the end, because every line of an agent's text has the quote's mark. */
const EVENT = /^(\d+)\. /gm;

/** As many whole events as fit, at least one, which is cut if necessary, with `next` and `more` accordingly. */
function fitted(transcript: string, bytesMax: number) {
  const { more = '', next = '0' } = END.exec(transcript)?.groups ?? {};
  if (bytesOf(transcript) <= bytesMax) return { transcript, next: Number(next), more: more.startsWith('Continue') };
  const events = [...transcript.matchAll(EVENT)].map(({ 1: eventId, index }) => ({ eventId: Number(eventId), index }));
  const [first, second] = events;
  for (const [at, { index }] of [...events.entries()].slice(1).toReversed()) {
    const beginning = transcript.slice(0, index);
    const last = events[at - 1];
    if (last !== undefined && bytesOf(beginning) <= bytesMax) {
      return { transcript: beginning, next: last.eventId, more: true };
    }
  }
  const alone = transcript.slice(first?.index, second?.index);
  const isMore = second !== undefined || more.startsWith('Continue');
  return { transcript: cut(alone, bytesMax), next: first?.eventId ?? Number(next), more: isMore };
}
