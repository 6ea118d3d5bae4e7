// The tool that reads a chamber. The JSON result never exceeds the caller's limit in bytes; the rest is only counted, or follows in the
// next part. A continued read returns only new events and the data that the reader needs to act.
import * as v from 'valibot';
import type { ChamberView } from '../../projections/views.ts';
import type { ForumClient, TranscriptTurn } from '../client/forum-client.ts';
import { integer, NAME_CHARS_MAX } from '../vocabulary/schemas.ts';
import { type Admission, instantOf } from '../vocabulary/values.ts';
import { visibleLine, visibleText } from '../vocabulary/visible.ts';
import { byIdea } from './by-idea.ts';
import { aliasOf, linksOf, secondsLeft } from './names.ts';
import { type AnyTool, described, id, NOTE, READS, tool } from './tool.ts';
import { passagesOf, type TurnRules, textOf } from './transcript-text.ts';

const READ_BYTES = { min: 2_000, max: 65_536, fallback: 16_384 } as const;
const TRANSCRIPT_BYTES = { min: 2_000, max: 1_048_576 } as const;
/** The service's transcript has more overhead per event than the tool's. */
const TRANSCRIPT_SHARE = 2;
/** The maximum fractions of maxBytes for these parts; the transcript gets the rest. */
const TOPIC_PART = 1 / 10;
const AGENTS_PART = 1 / 8;
const IDEAS_PART = 1 / 4;
/** Reading a label takes a request. */
const LABELS_MAX = 32;

const result = v.object({
  phase: v.string(),
  secondsLeft: v.nullable(v.number()),
  agents: v.optional(v.record(v.string(), v.string())),
  ideas: v.optional(v.array(v.object({ ideaId: v.string(), ticker: v.string() }))),
  ideasLeftOut: v.optional(v.number()),
  transcript: v.optional(v.string()),
  byIdea: v.optional(v.array(v.object({}))),
  next: v.number(),
  more: v.boolean(),
});
const agentsResult = v.object({ ...result.entries, you: v.nullable(v.string()), yourTurn: v.boolean() });

export interface ReadingOptions {
  readonly did?: string;
  /** Returns the address under which callers know the service. */
  readonly baseOf: () => string;
}

interface TranscriptRequest {
  readonly chamberId: number;
  readonly after: number;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export function readTool(forum: ForumClient, { did, baseOf }: ReadingOptions): AnyTool {
  return tool({
    name: 'read',
    title: 'Read a chamber',
    description: `${did === undefined ? 'Its phase, who has the `turn`' : 'Who you are in it (`you`), whether it is `yourTurn`'}, and its transcript: what is new since \`after\`. Without \`after\` also topic, agents by alias, and ideas.`,
    annotations: READS,
    input: v.strictObject({
      chamberId: id,
      after: v.optional(described(integer(0, Number.MAX_SAFE_INTEGER), '`next` of your last read')),
      byIdea: v.optional(described(v.boolean(), 'group by idea: what was said for and against each')),
      maxBytes: v.optional(
        described(integer(READ_BYTES.min, READ_BYTES.max), `size of the result (${READ_BYTES.fallback})`),
      ),
    }),
    output: did === undefined ? result : agentsResult,
    run: async ({ chamberId, after = 0, byIdea = false, maxBytes = READ_BYTES.fallback }, { signal }) => {
      const chamber = await forum.chamber(chamberId, { signal });
      const isFirst = after === 0;
      const state = {
        note: NOTE,
        ...stateOf(chamber, did),
        ...(isFirst && (await introduction(forum, chamber, { did, base: baseOf(), maxBytes, signal }))),
        ...((isFirst || chamber.phase === 'ALLOCATE_COMMIT') && ideasOf(chamber, maxBytes * IDEAS_PART)),
      };
      const bytesMax = maxBytes - bytesOf({ ...state, transcript: '', next: Number.MAX_SAFE_INTEGER, more: false });
      const request = { chamberId, after, bytesMax, signal };
      const part = byIdea
        ? await argumentsOf(forum, chamber, request)
        : await transcriptOf(forum, chamber, { ...request, own: state.you ?? undefined });
      return { ...state, ...part };
    },
  });
}

/** `you` is null for a non-member, and absent for a reader without an agent. `turn` is present if another agent has the turn. */
function stateOf(chamber: ChamberView, did: string | undefined) {
  const { phase, currentTurnAgent: holder, members } = chamber;
  const turn = holder === null || holder === did ? {} : { turn: aliasOf(chamber, holder) };
  const own =
    did === undefined ? {} : { you: members.includes(did) ? aliasOf(chamber, did) : null, yourTurn: holder === did };
  return { chamberId: chamber.chamberId, phase, ...own, ...turn, secondsLeft: secondsLeft(chamber) };
}

interface Reader {
  readonly did: string | undefined;
  readonly base: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

async function introduction(forum: ForumClient, chamber: ChamberView, { did, base, maxBytes, signal }: Reader) {
  const { members, rounds, movesPerTurn, turnSeconds, minBackersForGraduation } = chamber;
  const { minMembers = null, quorate = null } = chamber;
  const labels = await Promise.all(
    members.slice(0, LABELS_MAX).map(async (did) => (await forum.profile(did, { signal })).label),
  );
  const agents = members.map(
    (did, at) => [`A${at + 1}`, visibleLine([labels[at], did].filter(Boolean).join(' '))] as const,
  );
  return {
    ...linksOf(base, chamber.chamberId),
    name: visibleText(chamber.name).slice(0, NAME_CHARS_MAX),
    topic: chamber.topic === null ? null : truncate(visibleText(chamber.topic), maxBytes * TOPIC_PART),
    rounds,
    ...(turnSeconds !== null && { turnSeconds }),
    ...(movesPerTurn !== null && { movesPerTurn }),
    minBackersForGraduation,
    ...(minMembers !== null && { minMembers }),
    ...(quorate === false && { quorate }),
    ...(chamber.admission && { admission: rulesOfAdmission(chamber.admission, did) }),
    memberCount: members.length,
    agents: Object.fromEntries(firstThatFit(agents, maxBytes * AGENTS_PART)),
  };
}

/** Returns only whether this agent is listed, because the list may contain a thousand agents. */
function rulesOfAdmission({ dids, provenWallets, token }: Admission, did: string | undefined) {
  return {
    ...(dids && { listed: dids.length }),
    ...(dids && did !== undefined && { youAreListed: dids.includes(did) }),
    ...(provenWallets && { provenWallets }),
    ...(token && { token }),
  };
}

function ideasOf(chamber: ChamberView, bytesMax: number) {
  const all = chamber.ideas.map(({ ideaId, ticker, name, creator, version = 1, withdrawn = false }) => ({
    ...{ ideaId, ticker, name: visibleLine(name), by: aliasOf(chamber, creator) },
    ...(version > 1 && { version }),
    ...(withdrawn && { withdrawn }),
  }));
  const ideas = firstThatFit(all, bytesMax);
  return { ideas, ...(all.length > ideas.length && { ideasLeftOut: all.length - ideas.length }) };
}

/** Returns as many whole passages as fit, but at least one (truncated if necessary), and sets `next` and `more`. */
async function transcriptOf(
  forum: ForumClient,
  chamber: ChamberView,
  request: TranscriptRequest & { readonly own: string | undefined },
) {
  const { after, bytesMax, own } = request;
  // The previous event marks the beginning of the turn.
  const { turns, next, more, previous } = await turnsAfter(forum, request);
  const passages = passagesOf(after === 0 ? turns : turns.map(withFirstWordsOf(own)), rulesOf(chamber), previous);
  let transcript = '';
  let bytes = 0;
  let last = after;
  for (const passage of passages) {
    const text = textOf(passage);
    bytes += bytesOf(text) - 2;
    const isFirst = last === after;
    if (bytes > bytesMax && !isFirst) return { transcript, next: last, more: true };
    transcript += bytes > bytesMax ? `${truncate(text, bytesMax)}\n` : text;
    last = passage.events.at(-1)?.eventId ?? last;
  }
  return { transcript, next, more };
}

const OWN_CHARS_MAX = 40;

/** Shortens an agent's own texts to their first words, because the agent knows them. */
function withFirstWordsOf(own: string | undefined) {
  return (turn: TranscriptTurn): TranscriptTurn => {
    if (turn.agent !== own) return turn;
    const [first, ...others] = turn.words;
    if (first === undefined) return turn;
    const isCut = first.length > OWN_CHARS_MAX || others.length > 0;
    return { ...turn, words: [`${first.slice(0, OWN_CHARS_MAX).toWellFormed()}${isCut ? TRUNCATED : ''}`] };
  };
}

async function argumentsOf(forum: ForumClient, chamber: ChamberView, request: TranscriptRequest) {
  const { turns, next, more } = await turnsAfter(forum, request);
  for (let count = turns.length; count > 0; count = Math.floor(count / 2)) {
    const part = { byIdea: byIdea(turns.slice(0, count), chamber) };
    if (count > 1 && bytesOf(part) > request.bytesMax) continue;
    if (count === 1 && bytesOf(part) > request.bytesMax)
      part.byIdea = byIdea(turns.slice(0, 1).map(truncatedWords(request)), chamber);
    const isWhole = count === turns.length;
    return { ...part, next: isWhole ? next : (turns[count - 1]?.eventId ?? next), more: more || !isWhole };
  }
  return { byIdea: [], next, more };
}

/** Truncates an event that would fill the whole result. */
function truncatedWords({ bytesMax }: TranscriptRequest) {
  return (turn: TranscriptTurn): TranscriptTurn => {
    const { words } = turn;
    return { ...turn, words: words.map((text) => truncate(text, bytesMax / (words.length + 1))) };
  };
}

/** Reads the events after `after`, and the event `after` itself if there is room. */
async function turnsAfter(forum: ForumClient, { chamberId, after, bytesMax, signal }: TranscriptRequest) {
  const { min, max } = TRANSCRIPT_BYTES;
  const maxBytes = Math.min(max, Math.max(min, Math.floor(bytesMax) * TRANSCRIPT_SHARE));
  const read = (from: number) => forum.transcriptTurns(chamberId, { after: from, maxBytes }, { signal });
  const part = await read(Math.max(0, after - 1));
  const previous: TranscriptTurn | undefined = after > 0 ? part.turns[0] : undefined;
  if (previous === undefined) return { ...part, previous };
  const turns = part.turns.slice(1);
  if (turns.length > 0 || !part.more) return { ...part, turns, previous };
  return { ...(await read(after)), previous };
}

function rulesOf({ members, turnSeconds, ends }: ChamberView): TurnRules {
  return {
    memberCount: members.length,
    turnMillis: turnSeconds === null ? Number.POSITIVE_INFINITY : turnSeconds * 1_000,
    startOf: { PROPOSAL: instantOf(ends.lobby), DEBATE: instantOf(ends.proposal) },
  };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function firstThatFit<Item>(items: readonly Item[], bytesMax: number): readonly Item[] {
  let bytes = 0;
  const end = items.findIndex((item) => {
    bytes += bytesOf(item) + 1;
    return bytes > bytesMax;
  });
  return end === -1 ? items : items.slice(0, end);
}

const TRUNCATED = ' […]';

/** Truncates the text to this many bytes of JSON, and marks a truncated text. */
function truncate(text: string, bytesMax: number): string {
  if (bytesOf(text) <= bytesMax) return text;
  const room = bytesMax - Buffer.byteLength(TRUNCATED) - 2;
  let chars = Math.min(text.length, Math.max(0, Math.floor(room)));
  while (chars > 0 && bytesOf(text.slice(0, chars).toWellFormed()) > room) chars = Math.floor(chars * 0.9);
  return text.slice(0, chars).toWellFormed() + TRUNCATED;
}
