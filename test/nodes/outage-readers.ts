// Readers that poll in test:outage: pages, MCP tools, and agents that wait for their next task.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Signer } from '../kit/signer.ts';
import { prepare, send } from '../kit/wire.ts';
import { PUBLIC_URL } from './cluster.ts';

const PAUSE_MS = 250;
/** Longer than WAIT_SECONDS. */
const SLOW_MS = 6_000;
const WAIT_SECONDS = 5;

interface ReaderOptions {
  readonly url: string;
  readonly by: Signer;
  readonly newestChamber: () => number;
  readonly isOver: () => boolean;
}

export interface Reader {
  readonly name: string;
  /** Resolves at the end of the suite. */
  readonly reading: Promise<void>;
  /** Returns the number of correct responses since the last call. */
  readonly takeCount: () => number;
  /** Wrong responses other than 503. */
  readonly problems: readonly string[];
}

export function openReaders(options: ReaderOptions): readonly Reader[] {
  const { url, by, newestChamber } = options;
  let version = '';
  const todo = async () => {
    const since = version === '' ? '' : `&since=${encodeURIComponent(version)}`;
    const wire = prepare('GET', `/me/todo?wait=${WAIT_SECONDS}${since}`, { by, publicUrl: PUBLIC_URL });
    const { status, body } = await send(url, wire, timeout());
    version = body?.version ?? version;
    return { status, isRight: typeof body?.version === 'string' };
  };
  const page = async () => {
    const response = await fetch(`${url}/chambers/${newestChamber()}`, { headers: HTML, signal: timeout() });
    return { status: response.status, isRight: (await response.text()).includes('</html>') };
  };
  const tool = async () => {
    const params = { name: 'read', arguments: { chamberId: newestChamber() } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const response = await fetch(`${url}/mcp`, { method: 'POST', headers: MCP, body, signal: timeout() });
    return { status: response.status, isRight: (await response.text()).includes('structuredContent') };
  };
  return [keepAsking('/me/todo', todo, options), keepAsking('page', page, options), keepAsking('/mcp', tool, options)];
}

const HTML = { accept: 'text/html' };
const MCP = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

interface Asked {
  readonly status: number;
  readonly isRight: boolean;
}

function keepAsking(name: string, ask: () => Promise<Asked>, { url, isOver }: ReaderOptions): Reader {
  const problems: string[] = [];
  let count = 0;
  const read = async () => {
    for (; !isOver(); await sleep(PAUSE_MS)) {
      const asked = await ask().catch(() => undefined);
      if (asked === undefined || asked.status === 503) continue;
      if (asked.status !== 200) problems.push(`${url} ${name} returned ${asked.status}`);
      else if (asked.isRight) count++;
    }
  };
  const takeCount = () => {
    const taken = count;
    count = 0;
    return taken;
  };
  return { name: `${url} ${name}`, reading: read(), takeCount, problems };
}

function timeout(): AbortSignal {
  return AbortSignal.timeout(SLOW_MS);
}
