// The most popular third-party clients, each with a pinned version, run against the built service as its README or ours
// describes. In the end a table of the clients is printed.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Agent, type ChamberEvent } from '../../src/client/index.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { privateKeyOf } from '../../src/keys/private-key.ts';
import { findLine } from '../../src/process/child-output.ts';
import { fromHex, type Hex } from '../../src/vocabulary/values.ts';
import { REGISTRATION } from '../client/live-service.ts';
import { isInstalled, ROOT } from '../kit/programs.ts';
import { eventually } from '../kit/until.ts';
import { type CuttingProxy, openCuttingProxy } from './cutting-proxy.ts';
import { judgeFolder, PACKAGES } from './installed.ts';

type Client = keyof typeof PACKAGES.neighbours;

interface Neighbour {
  readonly kind: 'signer' | 'MCP host' | 'generator' | 'stream reader' | 'schemas' | 'wallet' | 'chain' | 'log';
  /** The npm package, or a program from elsewhere. */
  readonly client: Client | 'jq';
  /** A page whose code block is run, or a program in neighbours/. */
  readonly from: `${string}.md` | `${string}.mjs`;
  /** Programs that must be installed on the system. */
  readonly needs?: readonly string[];
}

const SIGNING = 'src/http/README.md';
const STREAMS = 'src/stream/README.md';

const NEIGHBOURS: readonly Neighbour[] = [
  { kind: 'signer', client: 'http-message-signatures', from: SIGNING },
  { kind: 'signer', client: 'http-message-sig', from: SIGNING },
  { kind: 'signer', client: 'web-bot-auth', from: SIGNING },
  { kind: 'MCP host', client: '@modelcontextprotocol/sdk', from: 'modelcontextprotocol-sdk.mjs' },
  { kind: 'MCP host', client: '@modelcontextprotocol/inspector', from: 'modelcontextprotocol-inspector.mjs' },
  { kind: 'MCP host', client: '@ai-sdk/mcp', from: 'ai-sdk-mcp.mjs' },
  { kind: 'MCP host', client: '@langchain/mcp-adapters', from: 'langchain-mcp-adapters.mjs' },
  { kind: 'MCP host', client: 'mcp-remote', from: 'mcp-remote.mjs' },
  { kind: 'generator', client: 'openapi-typescript', from: 'openapi-typescript.mjs' },
  { kind: 'generator', client: '@hey-api/openapi-ts', from: 'hey-api.mjs' },
  { kind: 'generator', client: 'openapi-zod-client', from: 'openapi-zod-client.mjs' },
  { kind: 'stream reader', client: 'eventsource', from: STREAMS },
  { kind: 'stream reader', client: 'eventsource-client', from: STREAMS },
  { kind: 'stream reader', client: '@microsoft/fetch-event-source', from: STREAMS },
  { kind: 'stream reader', client: 'reconnecting-websocket', from: STREAMS },
  { kind: 'stream reader', client: 'partysocket', from: STREAMS },
  { kind: 'schemas', client: 'ajv', from: 'ajv.mjs' },
  { kind: 'wallet', client: 'ethers', from: 'ethers.mjs' },
  { kind: 'chain', client: '@openzeppelin/merkle-tree', from: 'openzeppelin-merkle-tree.mjs' },
  { kind: 'log', client: 'jq', from: 'jq.mjs', needs: ['jq', 'curl', 'bash'] },
];

const URL_SHOWN = '127.0.0.1:8787';
/** The browser APIs that fetch-event-source needs. */
const BROWSER =
  'globalThis.window = globalThis; globalThis.document = { addEventListener() {}, removeEventListener() {} };';
const CUT_AFTER_BYTES = 16_000;
const COMMENTS = 12;
const PROGRAM_MILLIS_MAX = 60_000;

interface Row extends Neighbour {
  readonly result: 'works' | 'fails' | 'skipped';
  readonly seconds: number;
  readonly did: string;
}

const rows: Row[] = [];
let data: string;
let folder: string;
let service: Awaited<ReturnType<typeof startBuilt>>;
let proxy: CuttingProxy;
let env: NodeJS.ProcessEnv;
let events: readonly ChamberEvent[];

beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'neighbours-'));
  service = await startBuilt();
  const keyFile = join(data, 'agent.json');
  const agent = await playChamber(service.url, keyFile);
  events = await eventsOf(agent);
  proxy = await openCuttingProxy(service.url, CUT_AFTER_BYTES);
  folder = judgeFolder('neighbours');
  cpSync(join(ROOT, 'test/judges/neighbours'), folder, { recursive: true });
  writeFileSync(join(folder, 'agent.pem'), pemOf(keyFile), { mode: 0o600 });
  const seat = [join(ROOT, 'dist/src/cli.js'), 'mcp', `--url=${service.url}`, `--key=${keyFile}`];
  env = {
    PATH: process.env['PATH'],
    HOME: data,
    BASE_URL: service.url,
    DID: agent.did,
    LINES: String(events.length),
    SEAT: JSON.stringify({ command: process.execPath, args: seat }),
    NODE_NO_WARNINGS: '1',
  };
}, 120_000);

afterAll(async () => {
  printTable();
  proxy?.close();
  await service?.stop();
  if (data !== undefined) rmSync(data, { recursive: true });
});

describe.concurrent('third-party clients', () => {
  test.each(NEIGHBOURS.map((each) => [each.kind, each.client, each] as const))(
    'the %s %s works as its README or ours describes',
    { timeout: PROGRAM_MILLIS_MAX * 2 },
    async (_kind, _client, neighbour) => {
      const missing = (neighbour.needs ?? []).filter((program) => !isInstalled(program));
      if (missing.length > 0) {
        rows.push({ ...neighbour, result: 'skipped', seconds: 0, did: `not installed: ${missing.join(', ')}` });
        return;
      }
      const startedAt = performance.now();
      const secondsSince = () => Math.round((performance.now() - startedAt) / 100) / 10;
      try {
        const did = judgeOutput(neighbour, await run(neighbour));
        rows.push({ ...neighbour, result: 'works', seconds: secondsSince(), did });
      } catch (error) {
        const { stderr = '', message } = error as Error & { readonly stderr?: string };
        rows.push({ ...neighbour, result: 'fails', seconds: secondsSince(), did: (stderr || message).slice(0, 300) });
        throw error;
      }
    },
  );
});

async function run({ kind, client, from }: Neighbour): Promise<string> {
  const program = from.endsWith('.mjs') ? from : `readme-${client.replace(/\W+/g, '-')}.mjs`;
  if (program !== from) {
    const url = kind === 'stream reader' ? proxy.url : service.url;
    const shims = client === '@microsoft/fetch-event-source' ? `${BROWSER}\n` : '';
    writeFileSync(join(folder, program), shims + blockOf(from, client).replace(URL_SHOWN, new URL(url).host));
  }
  const options = { cwd: folder, env, timeout: PROGRAM_MILLIS_MAX };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], options);
  if (client.startsWith('@microsoft') || client === 'eventsource') expect(stderr).toBe('');
  return stdout;
}

/** Returns a sentence about the client's actions; throws if its output is not the expected one. */
function judgeOutput({ kind }: Neighbour, output: string): string {
  if (kind === 'signer') {
    expect(output).toBe("{ personality: { style: 'dry' } }\n");
    return 'PUT /personality';
  }
  if (kind !== 'stream reader') return output.trim();
  expect(output).toBe(events.map(({ eventId, type }) => `${eventId} ${type}\n`).join(''));
  expect(proxy.cuts()).toBeGreaterThan(0);
  return `${events.length} events, each once, over connections that are cut; ends with the chamber`;
}

/** Returns the page's JavaScript block that imports the package. */
function blockOf(page: string, client: string): string {
  const blocks = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/```js\n([\s\S]*?)```/g)].map(
    ([, text = '']) => text,
  );
  const [block, ...others] = blocks.filter((text) => text.includes(`from '${client}'`));
  if (block === undefined || others.length > 0) throw new Error(`${page} must have exactly one block with ${client}`);
  return block;
}

function versionOf(client: Neighbour['client']): string {
  return client === 'jq' ? '' : PACKAGES.neighbours[client];
}

function printTable(): void {
  const cells = [
    ['kind', 'client', 'version', 'result', 'seconds', 'what it did'],
    ...NEIGHBOURS.flatMap(({ client }) => rows.filter((row) => row.client === client)).map((row) => {
      return [row.kind, row.client, versionOf(row.client), row.result, row.seconds.toFixed(1), row.did];
    }),
  ];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  console.log(lines.join('\n'));
}

/** Starts the service built by `npm run build`, with its own chain. */
async function startBuilt() {
  const { PATH } = process.env;
  const settings = { PORT: String(await freePort()), DATABASE_PATH: join(data, 'chambers.db'), LOG_LEVEL: 'warn' };
  const child = spawn(process.execPath, [join(ROOT, 'dist/src/main.js')], {
    cwd: ROOT,
    env: { PATH, ...settings, STREAM_PING_SECONDS: '1', STREAM_DEAD_SECONDS: '10' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [, url = ''] = await findLine(child.stdout, /^listening on (\S+)$/);
  const stop = async () => {
    child.kill();
    await exited;
  };
  return { url, stop };
}

/** Plays chamber 1 to its end, and returns the agent that opened it. */
async function playChamber(url: string, keyFile: string): Promise<Agent> {
  const [ann, bob] = [await Agent.fromKeyFile(url, keyFile), Agent.generate(url)];
  for (const agent of [ann, bob]) await agent.register(REGISTRATION);
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000);
  const { chamberId } = await ann.createChamber({
    name: 'Neighbours',
    ...{ lobbyDeadline: inHours(1), proposalDeadline: inHours(2), debateDeadline: inHours(3) },
    ...{ allocateCommitDeadline: inHours(4), allocateRevealDeadline: inHours(5) },
    ...{ maxMembers: 2, turnSeconds: 600, rounds: { proposal: 1, debate: 1 } },
  });
  for (const agent of [ann, bob]) await agent.joinChamber(chamberId);
  await ann.propose(chamberId, { name: 'Rain insurance', ticker: 'RAIN', description: 'Pays when it does not rain.' });
  for (const agent of [ann, bob]) await agent.pass(chamberId);
  for (let n = 0; n < COMMENTS; n++)
    await ann.debate(chamberId, { ideaId: 'idea-1', comment: 'Who measures? '.repeat(20) });
  for (const agent of [ann, bob]) await agent.pass(chamberId);
  for (const agent of [ann, bob]) await agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]);
  for (const agent of [ann, bob]) await agent.reveal(chamberId);
  await eventually(() => ann.forum.outcome(chamberId), 60_000);
  return ann;
}

/** Returns the key of a key file in the form that openssl writes. */
function pemOf(keyFile: string): string | Buffer {
  const { seed } = JSON.parse(readFileSync(keyFile, 'utf8')) as { readonly seed: Hex };
  return privateKeyOf(fromHex(seed)).export({ format: 'pem', type: 'pkcs8' });
}

async function eventsOf({ forum }: Agent): Promise<readonly ChamberEvent[]> {
  const found: ChamberEvent[] = [];
  for await (const { event } of forum.history(1)) found.push(event as ChamberEvent);
  return found;
}
