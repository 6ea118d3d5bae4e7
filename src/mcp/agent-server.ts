// `chambers mcp`: an agent's MCP server over standard input and output, for clients of both protocol versions. The key never leaves this
// process: no tool, resource or prompt can read it.
import { McpServer, type McpServerFactory } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Agent } from '../client/agent.ts';
import type { Todo } from '../client/todo-stream.ts';
import { ActingCalls } from './acting-calls.ts';
import { actingTools, ownTools } from './agent-tools.ts';
import { Allowance, type AllowanceLimits } from './allowance.ts';
import { CallFiles } from './call-files.ts';
import { Endings } from './endings.ts';
import { INSTRUCTIONS, READ_ONLY_INSTRUCTIONS } from './instructions.ts';
import { addChamberResource, readingTools, uriOf } from './reading.ts';
import { Seat } from './seat.ts';
import { addTakePart } from './take-part.ts';
import { LastCall } from './tool.ts';
import { verifyTool } from './verify-tool.ts';

interface AgentServerOptions {
  readonly agent: Agent;
  /** The folder next to the key in which acting calls are stored. */
  readonly callsFolder: string;
  /** The time limit of an acting call, shorter than the limits of hosts. */
  readonly callMillisMax?: number | undefined;
  /** Whether to omit the tools that sign. */
  readonly isReadOnly: boolean;
  readonly limits: AllowanceLimits;
  readonly version: string;
  /** Prints a line for the operator. Standard output is not available, because it carries the protocol. */
  readonly report: (line: string) => void;
}

export function createAgentServer(options: AgentServerOptions) {
  const { agent, callsFolder, callMillisMax, isReadOnly, limits, version, report } = options;
  const files = new CallFiles(callsFolder, report);
  const calls = new ActingCalls(agent, { files, allowance: new Allowance(limits), callMillisMax, report });
  const seat = new Seat(agent, { calls, endings: new Endings(callsFolder, report), report });
  const reading = { did: agent.did, baseOf: () => agent.forum.service.baseUrl };
  const lastCall = new LastCall();
  const tools = [
    ...ownTools(seat),
    verifyTool(agent.forum),
    ...(isReadOnly ? [] : actingTools(seat)),
    ...readingTools(agent.forum, reading),
  ];
  const instructions = isReadOnly ? READ_ONLY_INSTRUCTIONS : INSTRUCTIONS;
  const factory: McpServerFactory = ({ era }) => {
    const capabilities = {
      tools: { listChanged: false },
      prompts: { listChanged: false },
      resources: { subscribe: true, listChanged: false },
    };
    const server = new McpServer({ name: 'chambers', version }, { capabilities, instructions });
    for (const { addTo } of tools) addTo(server, { lastCall, report });
    addTakePart(server);
    addChamberResource(server, agent.forum, async () => (await agent.todo()).todo);
    const ending = notifyChanges(server, seat, era === 'legacy' ? subscriptionsOf(server) : undefined);
    server.server.onclose = ending;
    return server;
  };
  return { factory, close: () => seat.close() };
}

/** Serves until the signal aborts or standard input ends. */
export async function serveAgent(options: AgentServerOptions, signal: AbortSignal): Promise<void> {
  const server = createAgentServer(options);
  const ended = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const transport = new StdioServerTransport();
  const handle = serveStdio(server.factory, { transport, onerror: ({ message }) => options.report(message) });
  const receive = transport.onmessage;
  transport.onmessage = (message, ...extra) => receive?.(withArguments(message), ...extra);
  await ended;
  server.close();
  await handle.close();
  process.stdin.destroy();
}

/** Removes null arguments, which some hosts send to a tool that needs none and the library rejects. */
function withArguments<Message extends object>(message: Message): Message {
  if (!('params' in message) || typeof message.params !== 'object' || message.params === null) return message;
  const { arguments: sent, ...params } = message.params as { readonly arguments?: unknown };
  return sent === null ? { ...message, params } : message;
}

/** Returns the live subscriptions of a client with the 2025 protocol. In the later version, the transport tracks them. */
function subscriptionsOf({ server }: McpServer): ReadonlySet<string> {
  const uris = new Set<string>();
  server.setRequestHandler('resources/subscribe', ({ params }) => {
    uris.add(params.uri);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    uris.delete(params.uri);
    return {};
  });
  return uris;
}

/** Notifies clients when the todo item of a chamber changes or disappears. Returns a function that stops the notifications. */
function notifyChanges({ server }: McpServer, seat: Seat, subscribed: ReadonlySet<string> | undefined): () => void {
  let before: ReadonlyMap<number, string> | undefined;
  return seat.listen(({ todo }: Todo) => {
    const after = new Map(todo.map((item) => [item.chamberId, JSON.stringify(item)]));
    const known = before ?? after;
    const changed = new Set([...known.keys(), ...after.keys()]);
    before = after;
    for (const chamberId of changed) {
      const uri = uriOf(chamberId);
      if (known.get(chamberId) === after.get(chamberId) || subscribed?.has(uri) === false) continue;
      server.sendResourceUpdated({ uri }).catch(() => {});
    }
  });
}
