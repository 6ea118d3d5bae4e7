// An agent's MCP server and a service in this process, so that a test can interrupt requests at any time.
import { join } from 'node:path';
import { type CallToolResult, type Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { createAgentServer } from '../../src/mcp/agent-server.ts';
import type { AllowanceLimits } from '../../src/mcp/allowance.ts';
import type { Fetch } from '../../src/reading/response.ts';
import { openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { PUBLIC_URL, registrationOf, TestService } from '../kit/test-service.ts';
import { newClient } from './seat-process.ts';

export interface SeatOptions {
  readonly service?: TestService;
  /** The folder that the agent's next process uses, too. */
  readonly folder?: string;
  readonly isReadOnly?: boolean;
  readonly limits?: AllowanceLimits;
  /** true by default. */
  readonly isRegistered?: boolean;
  readonly callMillisMax?: number;
  /** The network between the MCP server and the service. */
  readonly network?: (fetch: Fetch) => Fetch;
}

export interface TestSeat {
  readonly client: Client;
  readonly service: TestService;
  readonly folder: string;
  readonly did: string;
  /** The lines printed for the operator. */
  readonly reports: readonly string[];
  /** The result of a tool, or, with `error`, the body of its error. */
  // biome-ignore lint/suspicious/noExplicitAny: results are JSON, which every test reads in its own way
  call(name: string, args?: object, signal?: AbortSignal): Promise<any>;
  close(): Promise<void>;
}

/** An agent's seat. */
export async function openSeat(options: SeatOptions = {}): Promise<TestSeat> {
  const { service = new TestService(), folder = temporaryFolder(), network = (fetch) => fetch } = options;
  const { isReadOnly = false, limits = {}, isRegistered = true, callMillisMax } = options;
  // There are no streams without a socket, so changes are noticed when the todo list is read.
  const direct: Fetch = async (url, init) => {
    const isStream = new Headers(init.headers).get('accept') === 'text/event-stream';
    return await (isStream ? untilAborted(init.signal) : service.app.fetch(new Request(url, init), {}));
  };
  const clock = { now: service.clock.read, sleep: () => new Promise<void>((resolve) => setTimeout(resolve, 20)) };
  const forum = new ForumClient(PUBLIC_URL, { fetch: network(direct), clock });
  const keyFile = join(folder, 'agent.json');
  const agent = await Agent.fromKeyFile(forum, keyFile);
  const registering = await Agent.fromKeyFile(new ForumClient(PUBLIC_URL, { fetch: direct, clock }), keyFile);
  if (isRegistered) await registering.register({ ...registrationOf(new Signer()), operatorEmail: 'op@example.org' });
  const reports: string[] = [];
  const report = (line: string) => void reports.push(line);
  const callsFolder = join(folder, 'calls');
  const server = createAgentServer({ agent, callsFolder, callMillisMax, isReadOnly, limits, version: 'test', report });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await (await server.factory({ era: 'legacy' })).connect(far);
  const client = newClient('legacy');
  await client.connect(near);
  const close = async () => {
    server.close();
    await client.close();
  };
  atEnd(close);
  return {
    client,
    service,
    folder,
    did: agent.did,
    reports,
    close,
    call: async (name, args = {}, signal) => {
      const result: CallToolResult = await client.callTool(
        { name, arguments: { ...args } },
        { ...(signal && { signal }) },
      );
      const [first] = result.content;
      if (first?.type !== 'text') throw new Error(`${name} returned no text`);
      return JSON.parse(first.text);
    },
  };
}

/** An agent in a chamber with another member. */
export interface Played {
  readonly seat: TestSeat;
  readonly other: Signer;
  readonly chamberId: number;
}

/** The other member has the first turn. */
export async function joinedSeat(
  rules: Readonly<Record<string, unknown>> = {},
  options: SeatOptions = {},
): Promise<Played> {
  const seat = await openSeat(options);
  const other = await seat.service.agent();
  const chamberId = await openChamber(seat.service, [other], rules);
  await seat.call('join', { chamberId });
  return { seat, other, chamberId };
}

function untilAborted(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
}
