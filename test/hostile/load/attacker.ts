// One kind of hostile caller, a separate process with its own loopback address: `attacker.ts KIND URL ADDRESS`.
import { randomBytes } from 'node:crypto';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { acceptReceipt } from '../../../src/crypto/receipt.ts';
import { ENTRIES, TILE_WIDTH, tilePath } from '../../../src/tlog/tile.ts';
import { PHASES } from '../../../src/vocabulary/values.ts';
import { ACCOUNT_WALLET, CJK } from '../../kit/full-log.ts';
import { Signer } from '../../kit/signer.ts';
import { prepare, registrationOf, send } from '../../kit/wire.ts';
import { ATTACKS, type AttackKind } from './attacks.ts';
import {
  ATTACKERS_AGENT,
  chamberOf,
  DEEP_CHAMBER,
  DEPLOYING_CHAMBER,
  FIRST_SETTLED_CHAMBER,
  FULL_CHAMBERS,
  HONEST_AGENTS,
  honestAgent,
  LONG_CHAMBER,
  PUBLIC_URL,
} from './scene.ts';

/** Three times the production limit of an address. */
const REQUESTS_PER_SECOND = 1_500;
const RENEW_MS = 10_000;
/** With this many words of 256 three-byte characters, a registration has just under 64 KiB. */
const LONGEST_WORDS = 82;
const HUGE_BYTES = 10_000_000;
const COSTLY_AFTER_MAX = 900;
const REOPEN_MS = 5;
const PIPELINING_CONNECTIONS = 400;
const PIPELINED = 64;
const CONSUMERS = 2_000;
/** The maximum number of leaves in one request. */
const LEAVES = 10_000;
const CHECKPOINT_POLL_MS = 200;
/** Every full chamber has more moves than this. */
const MOVES_MIN = 1_000;
/** Requests for receipts, and headers of maximum length that request none. */
const ACCEPT_SIGNATURES = [
  acceptReceipt('n'),
  `receipt=(${'"event" '.repeat(1_900)})`,
  'a=(),'.repeat(3_000),
  `a=${'('.repeat(15_000)}`,
];
/** The time between two reads of a slow reader, of up to 64 KiB each. */
const DRIP_MS = 1_000;

const [, , kind = '', url = '', localAddress = ''] = process.argv;
const { hostname, port } = new URL(url);

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

const RUN: Readonly<Record<AttackKind, () => Promise<void>>> = {
  pipelining: () => renew(4, () => `GET ${bulk()} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(3_000), { isPaused: true }),
  'wrong-signatures': () => flood(200, forgedMove),
  'unknown-keys': () => flood(50, unknownKey),
  'bulk-readers': () => flood(100, () => ({ path: bulk() })),
  'cold-chambers': () =>
    flood(20, () => ({ path: `/chambers/${randomFullChamber()}${any(['', '/ideas', '/allocations'])}` })),
  'fat-bodies': () => flood(50, largestRegistration),
  lists: () => flood(50, () => ({ path: list() })),
  'idle-streams': () => renew(500, streamHead, { isPaused: true }),
  'slow-readers': () => drip(500),
  consumers: () => renew(CONSUMERS, () => allStreamHead('')),
  'silent-connections': () => renew(200, () => 'GET /health HTTP/1.1\r\nHo'),
  pages: () => flood(100, () => ({ path: `/chambers/${any([DEEP_CHAMBER, randomFullChamber()])}`, headers: BROWSER })),
  'unread-pages': () =>
    renew(1_500, () => `GET /chambers/${DEEP_CHAMBER} HTTP/1.1\r\nHost: x\r\n${ASKS_FOR_PAGE}\r\n\r\n`, {
      isPaused: true,
    }),
  'unread-lists': () =>
    renew(1_500, () => `GET /chambers/${randomFullChamber()}/ideas HTTP/1.1\r\nHost: x\r\n\r\n`, { isPaused: true }),
  transcripts: () => flood(100, transcript),
  'model-reads': () => flood(100, modelRead),
  documents: () => flood(100, () => ({ path: any(DOCUMENTS), headers: { 'if-none-match': any(['"x"', '*']) } })),
  'blank-headers': () => flood(100, () => ({ path: '/docs', headers: { 'if-none-match': `x${' '.repeat(15_500)}x` } })),
  'pipelined-signatures': pipelinedSignatures,
  outcomes: () => flood(100, outcome),
  'log-tree': async () => {
    const log = await readLog();
    await flood(100, () => nodeOf(log));
  },
  'log-index': async () => {
    const { prefix, size } = await readLog();
    await flood(100, () => ({ path: `${prefix}/index?after=${below(size - LEAVES)}&limit=${LEAVES}` }));
  },
  retirements: () => flood(100, wrongRetirement),
  receipts: async () => {
    const move = await acceptedMove();
    await flood(100, () => ({ ...move, headers: { ...move.headers, 'accept-signature': any(ACCEPT_SIGNATURES) } }));
  },
};

const DOCUMENTS = ['/docs', '/SKILL.md', '/.well-known/http-message-signatures-directory'];
const BROWSER = { accept: 'text/html' };
const ASKS_FOR_PAGE = 'Accept: text/html';

process.once('disconnect', () => process.exit(0));
const attack = ATTACKS.find((each) => each === kind);
if (attack === undefined) throw new Error(`KIND is one of ${ATTACKS.join(', ')}`);
await RUN[attack]();

/** Sends requests over the given number of connections, each after the previous response, at REQUESTS_PER_SECOND in total. */
async function flood(connections: number, next: () => Sent): Promise<void> {
  const agent = new HttpAgent({ keepAlive: true, maxSockets: connections });
  const pauseMs = (1_000 * connections) / REQUESTS_PER_SECOND;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (;;) await Promise.all([exchange(next(), agent), sleep(pauseMs)]);
    }),
  );
}

function exchange({ method = 'GET', path, headers = {}, body }: Sent, agent: HttpAgent): Promise<void> {
  return new Promise((resolve) => {
    const request = httpRequest({ hostname, port, localAddress, agent, method, path, headers }, (response) => {
      response.on('error', () => {}).once('close', resolve);
      response.resume();
    });
    request.once('error', () => resolve());
    request.end(body);
  });
}

/** Opens readers of all lines, in each form, that read a little every second. */
async function drip(connections: number): Promise<void> {
  const pages = 'GET /events?after=0&limit=10000 HTTP/1.1\r\nHost: x\r\n\r\n';
  for (let index = 0; index < connections; index++) {
    const socket = open(index % 3 === 0 ? pages : allStreamHead('?after=0'), { isPaused: true });
    socket.on('data', () => socket.pause());
    setInterval(() => socket.resume(), DRIP_MS);
  }
  await new Promise(() => {});
}

/** Opens connections that send the bytes and then wait; reopens all of them from time to time. */
async function renew(connections: number, bytes: () => string, { isPaused = false } = {}): Promise<void> {
  for (;;) {
    const sockets = Array.from({ length: connections }, () => open(bytes(), { isPaused }));
    await sleep(RENEW_MS);
    for (const socket of sockets) socket.destroy();
  }
}

function open(bytes: string, { isPaused }: { readonly isPaused: boolean }): Socket {
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  socket.on('error', () => {});
  if (isPaused) socket.pause();
  else socket.resume();
  socket.write(bytes);
  return socket;
}

function any<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}

function randomFullChamber(): number {
  return 1 + Math.floor(Math.random() * FULL_CHAMBERS);
}

function bulk(): string {
  return `/chambers/${randomFullChamber()}/events?limit=10000`;
}

function list(): string {
  return any([
    ...PHASES.map((phase) => `/chambers?phase=${phase}&limit=200`),
    '/ideas?limit=200',
    '/ideas/T1',
    `/ideas/T200?chamberId=${randomFullChamber()}`,
  ]);
}

function streamHead(): string {
  return streamHeadOf(`/chambers/${any([randomFullChamber(), chamberOf(0)])}/stream?after=0`);
}

function allStreamHead(query: string): string {
  return streamHeadOf(`/events${query}`);
}

function streamHeadOf(target: string): string {
  const common = `GET ${target} HTTP/1.1\r\nHost: x\r\n`;
  const key = randomBytes(16).toString('base64');
  const webSocket = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`;
  return common + any(['Accept: text/event-stream\r\n\r\n', webSocket]);
}

function outcome(): Sent {
  const headers = any([{}, { 'accept-encoding': 'gzip' }, { 'if-none-match': '"x"' }]);
  return { path: `/chambers/${any([DEPLOYING_CHAMBER, settledChamber()])}/outcome`, headers };
}

function settledChamber(): number {
  return FIRST_SETTLED_CHAMBER + below(FULL_CHAMBERS + 1 - FIRST_SETTLED_CHAMBER);
}

interface PublishedLog {
  readonly prefix: string;
  readonly size: number;
}

/** Resolves once a checkpoint covers the whole scene. */
async function readLog(): Promise<PublishedLog> {
  const service = (await (await fetch(url)).json()) as { readonly log: { readonly prefix: string } };
  const { prefix } = service.log;
  for (;;) {
    const note = await (await fetch(`${url}${prefix}/checkpoint`)).text();
    const size = Number(note.split('\n')[1]);
    if (size >= LEAVES) return { prefix, size };
    await sleep(CHECKPOINT_POLL_MS);
  }
}

/** Requests a checkpoint, a tile or a proof of any event. */
function nodeOf({ prefix, size }: PublishedLog): Sent {
  const index = below(Math.floor(size / TILE_WIDTH));
  const level = any([0, ENTRIES] as const);
  return {
    path: any([
      `${prefix}/checkpoint`,
      `${prefix}/${tilePath({ level, index, width: TILE_WIDTH })}`,
      `${prefix}/${tilePath({ level, index, width: 1 + below(TILE_WIDTH) })}`,
      `/chambers/${randomFullChamber()}/events/${1 + below(MOVES_MIN)}/tlog-proof`,
      `/agents/${honestAgent(below(HONEST_AGENTS)).did}/events/1/tlog-proof`,
    ]),
  };
}

/** Makes a retirement by a proven wallet, possibly a contract, that did not sign it. */
function wrongRetirement(): Sent {
  const walletSignature = `0x${randomBytes(64).toString('hex')}1b`;
  const body = { walletAddress: ACCOUNT_WALLET, walletSignature, issuedAt: new Date().toISOString() };
  return {
    method: 'POST',
    path: `/agents/${honestAgent(below(HONEST_AGENTS)).did}/retire`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
}

/** The longest valid move, which is public afterwards: any client can replay it. */
async function acceptedMove(): Promise<Sent> {
  const body = { comment: CJK.repeat(8_000), refinement: { text: CJK.repeat(12_000) } };
  const path = `/chambers/${chamberOf(HONEST_AGENTS)}/debate`;
  const move = prepare('POST', path, { by: ATTACKERS_AGENT, body, publicUrl: PUBLIC_URL });
  const { status } = await send(url, move);
  if (status !== 200) throw new Error(`the move was answered with ${status}`);
  return move;
}

function below(count: number): number {
  return Math.floor(Math.random() * count);
}

/** All registrations differ, so that none is a retry of another. */
function transcript(): Sent {
  const after = Math.floor(Math.random() * COSTLY_AFTER_MAX);
  const maxBytes = 1_048_576 - Math.floor(Math.random() * 1_000);
  const accept = any(['text/markdown', 'application/json']);
  return { path: `/chambers/${LONG_CHAMBER}/transcript?after=${after}&maxBytes=${maxBytes}`, headers: { accept } };
}

function modelRead(): Sent {
  const args = {
    chamberId: randomFullChamber(),
    after: Math.floor(Math.random() * COSTLY_AFTER_MAX),
    maxBytes: 65_536,
  };
  const params = { name: 'read', arguments: args };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  return {
    method: 'POST',
    path: '/mcp',
    headers: { ...headers, host: 'localhost' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  };
}

/** Each connection sends the next requests once it has all responses, and is reopened when it is closed. */
async function pipelinedSignatures(): Promise<void> {
  const bytes = Array.from({ length: PIPELINED }, () => rawRequest(forgedMove())).join('');
  await Promise.all(
    Array.from({ length: PIPELINING_CONNECTIONS }, async () => {
      for (;;) {
        const socket = open('', { isPaused: false });
        let answers = 0;
        socket.on('data', (chunk: Buffer) => {
          answers += chunk.toString('latin1').split('HTTP/1.1 ').length - 1;
          if (answers < PIPELINED) return;
          answers = 0;
          socket.write(bytes);
        });
        socket.write(bytes);
        await new Promise((resolve) => socket.once('close', resolve));
        await sleep(REOPEN_MS);
      }
    }),
  );
}

function rawRequest({ method, path, headers = {}, body = '' }: Sent): string {
  const lines = Object.entries({ host: 'x', ...headers, 'content-length': Buffer.byteLength(body) });
  return `${method} ${path} HTTP/1.1\r\n${lines.map((line) => line.join(': ')).join('\r\n')}\r\n\r\n${body}`;
}

/** Makes a move in the name of an honest agent, which any client can send. */
function forgedMove(): Sent {
  const index = Math.floor(Math.random() * HONEST_AGENTS);
  return wronglySigned(honestAgent(index), `/chambers/${chamberOf(index)}/debate`);
}

function unknownKey(): Sent {
  return wronglySigned(new Signer(), '/chambers');
}

function wronglySigned(by: Signer, path: string): Sent {
  const wire = prepare('POST', path, { by, body: { comment: 'forged' }, publicUrl: PUBLIC_URL });
  return { ...wire, headers: { ...wire.headers, signature: `sig1=:${randomBytes(64).toString('base64')}:` } };
}

function largestRegistration(): Sent {
  const headers = { 'content-type': 'application/json' };
  if (Math.random() < 0.02) return { method: 'POST', path: '/register', headers, body: 'x'.repeat(HUGE_BYTES) };
  const words = Array.from({ length: LONGEST_WORDS }, () => '議'.repeat(256));
  const personality = { loves: words.slice(0, 64), hates: words.slice(64) };
  const body = { ...registrationOf(new Signer()), personality };
  return { method: 'POST', path: '/register', headers, body: JSON.stringify(body) };
}
