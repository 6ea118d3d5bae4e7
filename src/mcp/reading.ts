// What needs no key: chambers and transcripts as tools and as resources. `chambers mcp` reads them from the service, and the service
// from itself.
import { type McpServer, ProtocolError, ProtocolErrorCode, ResourceTemplate } from '@modelcontextprotocol/server';
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { parseId } from '../vocabulary/parameters.ts';
import { integer } from '../vocabulary/schemas.ts';
import { PHASES } from '../vocabulary/values.ts';
import { visibleLine, visibleText, visibleValue } from '../vocabulary/visible.ts';
import { errorBody } from './errors.ts';
import { secondsLeft } from './names.ts';
import { readTool } from './read-tool.ts';
import { type AnyTool, described, NOTE, READS, requireShort, tool } from './tool.ts';

const CHAMBERS = { max: 50, fallback: 20 } as const;

const phase = v.picklist(PHASES, `must be one of ${PHASES.join(', ')}`);

/** `did` is the agent that reads, if it is one. */
export function readingTools(forum: ForumClient, did?: string): readonly AnyTool[] {
  return [
    tool({
      name: 'chambers',
      title: 'List chambers',
      description: 'Chambers, newest first.',
      annotations: READS,
      input: v.strictObject({
        phase: v.optional(described(phase, 'only those in it; LOBBY can be joined')),
        limit: v.optional(described(integer(1, CHAMBERS.max), `how many (${CHAMBERS.fallback})`)),
        before: v.optional(described(integer(1, Number.MAX_SAFE_INTEGER), 'the smallest id of the page before')),
      }),
      output: v.object({ chambers: v.array(v.object({ chamberId: v.number(), phase: v.string() })) }),
      run: async ({ phase, limit = CHAMBERS.fallback, before }, { signal }) => {
        const items = await forum.chambers({ phase, limit, before, ends: 1 }, { signal });
        const now = new Date(forum.service.clock.now()).toISOString();
        const chambers = items.map(({ chamberId, phase, phaseEndsAt, name, memberCount }) => ({
          chamberId,
          phase,
          secondsLeft: secondsLeft({ now, phaseEndsAt: phaseEndsAt ?? null, turnEndsAt: null }),
          name,
          memberCount,
        }));
        return { note: NOTE, chambers };
      },
    }),
    readTool(forum, did),
  ];
}

export function uriOf(chamberId: number): string {
  return `chamber://${chamberId}`;
}

/** chamber://{chamberId}: a transcript. `list` returns the chambers to offer. */
export function addChamberResource(
  server: McpServer,
  forum: ForumClient,
  list: () => Promise<readonly { readonly chamberId: number; readonly phase: string }[]>,
): void {
  const offered = async () => {
    const resources = (await coded(list())).map(({ chamberId, phase }) => {
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
    const text = visibleText(await coded(forum.transcript(toId(chamberId)).then(requireShort)));
    return { contents: [{ uri: uri.href, mimeType: 'text/markdown', text }] };
  });
}

function toId(text: string | readonly string[] | undefined): number {
  const id = typeof text === 'string' ? parseId(text) : undefined;
  if (id !== undefined) return id;
  throw toProtocolError(new ClientError('FORUM_ERR_NOT_FOUND', 'chamber not found: the URI is chamber://<id>'));
}

async function coded<Result>(pending: Promise<Result>): Promise<Result> {
  return await pending.catch((error: unknown) => {
    throw toProtocolError(error);
  });
}

function toProtocolError(error: unknown): ProtocolError {
  const body = visibleValue(errorBody(error));
  const isAsked = error instanceof ClientError && !error.retryable;
  const code = isAsked ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, `${body.error}: ${body.detail}`, body);
}
