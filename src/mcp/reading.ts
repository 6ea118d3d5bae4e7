// Tools and resources that need no key: chambers and transcripts. `chambers mcp` reads from the service, the service from itself.
import { type McpServer, ProtocolError, ProtocolErrorCode, ResourceTemplate } from '@modelcontextprotocol/server';
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import type { ChamberListItem, ForumClient } from '../client/forum-client.ts';
import { pause } from '../reading/waiting.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { integer } from '../vocabulary/schemas.ts';
import { PHASES, type Phase } from '../vocabulary/values.ts';
import { visibleLine, visibleText, visibleValue } from '../vocabulary/visible.ts';
import { errorBody } from './errors.ts';
import { secondsLeft } from './names.ts';
import { type ReadingOptions, readTool } from './read-tool.ts';
import { type AnyTool, described, NOTE, READS, requireShort, tool } from './tool.ts';

const CHAMBERS = { max: 50, fallback: 20 } as const;
const WAIT_SECONDS_MAX = 50;
const LIST_POLL_MILLIS = 1_000;
/** Reading a topic takes a request. */
const TOPICS_MAX = 20;
const TOPIC_CHARS_MAX = 160;

const phase = v.picklist(PHASES, `must be one of ${PHASES.join(', ')}`);

const listing = {
  phase: v.optional(described(phase, 'only chambers in this phase; LOBBY can be joined')),
  limit: v.optional(described(integer(1, CHAMBERS.max), `how many (${CHAMBERS.fallback})`)),
  before: v.optional(described(integer(1, Number.MAX_SAFE_INTEGER), 'the smallest id of the previous page')),
};
const waiting = { wait: v.optional(described(integer(1, WAIT_SECONDS_MAX), 'seconds to wait for a new one')) };

interface Listing {
  readonly phase?: Phase | undefined;
  readonly limit?: number | undefined;
  readonly before?: number | undefined;
  readonly wait?: number | undefined;
}

export function readingTools(forum: ForumClient, options: ReadingOptions): readonly AnyTool[] {
  // Only an agent's own server waits, because a call at the service occupies a read slot.
  const input = options.did === undefined ? v.strictObject(listing) : v.strictObject({ ...listing, ...waiting });
  return [chambersTool(forum, input), readTool(forum, options)];
}

function chambersTool(forum: ForumClient, input: v.GenericSchema<unknown, Listing>): AnyTool {
  return tool({
    name: 'chambers',
    title: 'List chambers',
    description: 'Chambers, newest first.',
    annotations: READS,
    input,
    output: v.object({ chambers: v.array(v.object({ chamberId: v.number(), phase: v.string() })) }),
    run: async ({ phase, limit = CHAMBERS.fallback, before, wait = 0 }, { signal }) => {
      const list = () => forum.chambers({ phase, limit, before, ends: 1 }, { signal });
      const items = await untilNew(list, wait, signal);
      const now = new Date(forum.service.clock.now()).toISOString();
      const topics = await Promise.all(items.slice(0, TOPICS_MAX).map((item) => topicOf(forum, item, signal)));
      const chambers = items.map(({ chamberId, phase, phaseEndsAt, name, memberCount }, at) => ({
        chamberId,
        phase,
        secondsLeft: secondsLeft({ now, phaseEndsAt: phaseEndsAt ?? null, turnEndsAt: null }),
        name,
        ...topics[at],
        memberCount,
      }));
      return { note: NOTE, chambers };
    },
  });
}

/** Reads the topic only of a chamber in LOBBY, where agents choose by topic. */
async function topicOf(forum: ForumClient, { chamberId, phase }: ChamberListItem, signal: AbortSignal) {
  if (phase !== 'LOBBY') return {};
  const { topic } = await forum.chamber(chamberId, { signal });
  return topic === null ? {} : { topic: visibleText(topic).slice(0, TOPIC_CHARS_MAX).toWellFormed() };
}

/** Returns the list once it contains a new chamber, or when the time is up. */
async function untilNew(
  list: () => Promise<readonly ChamberListItem[]>,
  seconds: number,
  signal: AbortSignal,
): Promise<readonly ChamberListItem[]> {
  const end = performance.now() + seconds * 1_000;
  let items = await list();
  const known = new Set(items.map(({ chamberId }) => chamberId));
  while (items.every(({ chamberId }) => known.has(chamberId)) && performance.now() < end) {
    await pause(LIST_POLL_MILLIS, signal);
    items = await list();
  }
  return items;
}

export function uriOf(chamberId: number): string {
  return `chamber://${chamberId}`;
}

/** Adds the resource chamber://{chamberId}, a transcript. `list` returns the chambers to list. */
export function addChamberResource(
  server: McpServer,
  forum: ForumClient,
  list: () => Promise<readonly { readonly chamberId: number; readonly phase: string }[]>,
): void {
  const offered = async () => {
    const resources = (await withProtocolErrors(list())).map(({ chamberId, phase }) => {
      return {
        uri: uriOf(chamberId),
        name: `chamber-${chamberId}`,
        title: visibleLine(`Chamber ${chamberId}, ${phase}`),
      };
    });
    return { resources };
  };
  const config = { title: 'Chamber', description: `Transcript of a chamber. ${NOTE}`, mimeType: 'text/markdown' };
  const template = new ResourceTemplate('chamber://{chamberId}', { list: offered });
  server.registerResource('chamber', template, config, async (uri, { chamberId }) => {
    const text = visibleText(await withProtocolErrors(forum.transcript(toId(chamberId)).then(requireShort)));
    return { contents: [{ uri: uri.href, mimeType: 'text/markdown', text }] };
  });
}

function toId(text: string | readonly string[] | undefined): number {
  const id = typeof text === 'string' ? parseId(text) : undefined;
  if (id !== undefined) return id;
  throw toProtocolError(new ClientError('FORUM_ERR_NOT_FOUND', 'chamber not found: the URI is chamber://<id>'));
}

async function withProtocolErrors<Result>(pending: Promise<Result>): Promise<Result> {
  return await pending.catch((error: unknown) => {
    throw toProtocolError(error);
  });
}

function toProtocolError(error: unknown): ProtocolError {
  const body = visibleValue(errorBody(error));
  const isCallersFault = error instanceof ClientError && !error.retryable;
  const code = isCallersFault ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, `${body.error}: ${body.detail}`, body);
}
