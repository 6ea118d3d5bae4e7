// `npm run test:outage`: PostgreSQL and a pooler in front of it fail in every way, while chambers change phase and readers of
// streams, pages, waits and MCP are connected. No process exits, /ready reports each fault in time, everything recovers by
// itself, no answered line is missing, and each stream delivers every line once and in order. One of the three nodes is 100 ms
// away from its database, whose role defaults to serializable, and one is behind PgBouncer, if installed. `-- killed full` runs
// only these faults, `--program FILE` another build.
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { hasPgBouncer, startPgBouncer } from '../kit/pgbouncer.ts';
import { startPostgres } from '../kit/postgres-server.ts';
import { ROOT } from '../kit/programs.ts';
import { until } from '../kit/until.ts';
import { get, type WireAnswer } from '../kit/wire.ts';
import { startCluster } from './cluster.ts';
import { type Fault, faultsOf, openFullDisk, sql } from './outage-faults.ts';
import { PHASE_MS, Play } from './outage-play.ts';
import { openReaders } from './outage-readers.ts';
import { refusalsOfSharedSessions } from './outage-shared-sessions.ts';
import { StreamReader } from './outage-streams.ts';

/**
 * The time from the start of the fault (PostgreSQL has exited, is stopped, has committed the REVOKE, or its disk is full) to the first
 * response of /ready that names it, which is polled every 50 ms.
 */
const NOTICED_MS_MAX = 3_000;
const HEALED_MS_MAX = 30_000;
const OUTAGE_MS = 3_000;
/** The timeout of /ready; a slower response counts as missing. */
const READY_MS_MAX = 1_000;
const DELAY_MS = 100;
const PROTOCOLS = ['server-sent events', 'WebSocket'] as const;

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { program: { type: 'string', default: join(ROOT, 'dist/src/main.js') } },
});
const { program } = values;
const problems: string[] = [];
const folder = mkdtempSync(join(tmpdir(), 'chambers-outage-'));
const server = await startPostgres();
await sql(server, 'CREATE ROLE chambers LOGIN PASSWORD $$secret$$');
await sql(server, 'CREATE DATABASE chambers OWNER chambers');
await sql(server, 'ALTER ROLE chambers SET default_transaction_isolation = serializable');
const database = new URL(server.url);
[database.username, database.password, database.pathname] = ['chambers', 'secret', '/chambers'];
const databaseUrl = database.href;
const pooler = hasPgBouncer() ? await startPgBouncer({ databaseUrl, mode: 'session', folder }) : undefined;
if (pooler === undefined) print('skipped the pooler: pgbouncer is not installed');
else problems.push(...(await refusalsOfSharedSessions({ databaseUrl, folder, program })));

const databases = [databaseUrl, await openSlowProxy(database), ...(pooler === undefined ? [] : [pooler.url])];
const clusters = [];
// The nodes start one after another, because the first one creates the schema. All have the same keys.
for (const each of databases) clusters.push(await startCluster({ databaseUrl: each, nodes: 1, program }));
const urls = clusters.flatMap(({ nodes }) => nodes.map(({ url }) => url));
const disk = await openFullDisk(server);
const ofChambers = new Map<number, StreamReader[]>();
const ofAll = urls.flatMap((url) =>
  PROTOCOLS.map((protocol) => new StreamReader({ url, path: '/events', protocol, notes: false })),
);
const play = new Play((chamberId) => void ofChambers.set(chamberId, followersOf(chamberId)));
try {
  const agents = await Promise.all(urls.map((url) => play.register(url)));
  const newestChamber = () => [...play.answered.keys()].at(-1) as number;
  const isOver = () => play.isOver;
  const playing = agents.map((by, index) => play.play(urls[index] as string, by));
  await until(() => play.answered.size > 0);
  const readers = agents.flatMap((by, index) => openReaders({ url: urls[index] as string, by, newestChamber, isOver }));
  await sleep(2 * PHASE_MS);
  for (const fault of [...faultsOf(server, pooler), disk.fault]) {
    if (names.length > 0 && !names.includes(fault.name)) continue;
    await pass(fault);
    for (const reader of readers) reader.takeCount();
    await sleep(PHASE_MS);
  }
  await sleep(2 * PHASE_MS);
  for (const { name, takeCount } of readers)
    if (takeCount() === 0) problems.push(`${name} had no correct response after the last outage`);
  play.isOver = true;
  await Promise.all([...playing, ...readers.map(({ reading }) => reading)]);
  problems.push(...play.problems, ...readers.flatMap((reader) => reader.problems), ...(await judgeLines()));
} catch (error) {
  problems.push(`the suite ended early: ${(error as Error).stack}`);
} finally {
  play.isOver = true;
  problems.push(...clusters.flatMap((cluster) => cluster.problems));
  for (const cluster of clusters) await cluster.stop();
  await pooler?.kill();
  await server.stop();
  disk.close();
  rmSync(folder, { recursive: true, force: true });
}
const lines = [...play.answered.values()].reduce((sum, ids) => sum + ids.size, 0);
print(`${lines} answered moves in ${play.answered.size} chambers; ${problems.length} problems`);
for (const problem of problems) print(`FAILED: ${problem}`);
process.exit(problems.length > 0 || lines === 0 ? 1 : 0);

/** Follows a chamber with notes: by server-sent events at one node, by WebSocket at the next. */
function followersOf(chamberId: number): StreamReader[] {
  return PROTOCOLS.map((protocol, index) => {
    const url = urls[(chamberId + index) % urls.length] as string;
    return new StreamReader({ url, path: `/chambers/${chamberId}/stream`, protocol, notes: true });
  });
}

async function pass({ name, begin, end, detail, isOfPooler = false }: Fault): Promise<void> {
  const concerned = isOfPooler ? urls.slice(-1) : urls;
  await begin();
  const begun = performance.now();
  const noticed = await Promise.all(
    concerned.map((url) => becomes(url, 503, { name, since: begun, max: NOTICED_MS_MAX, detail })),
  );
  await sleep(Math.max(0, OUTAGE_MS - (performance.now() - begun)));
  await end();
  const ended = performance.now();
  const healed = await Promise.all(
    concerned.map((url) => becomes(url, 200, { name, since: ended, max: HEALED_MS_MAX, detail: undefined })),
  );
  const text = (millis: readonly number[]) => millis.map((each) => `${Math.round(each)} ms`).join(', ');
  print(`${name}: /ready reports it after ${text(noticed)}, and returns 200 again after ${text(healed)}`);
}

interface Wanted {
  readonly name: string;
  readonly since: number;
  readonly max: number;
  readonly detail: RegExp | undefined;
}

async function becomes(url: string, status: number, { name, since, max, detail }: Wanted): Promise<number> {
  let last: WireAnswer | undefined;
  while (performance.now() - since < max) {
    last = await get(url, '/ready', AbortSignal.timeout(READY_MS_MAX)).catch(() => undefined);
    const millis = performance.now() - since;
    if (millis <= max && last?.status === status && (detail === undefined || detail.test(last.body.detail)))
      return millis;
    await sleep(50);
  }
  const what = `${last?.status} ${JSON.stringify(last?.body)}`;
  problems.push(`${name}: /ready of ${url} was ${what} after ${max} ms, not ${status} ${detail ?? ''}`);
  return max;
}

/** Checks that the log has every acknowledged event and that every reader received the whole log. */
async function judgeLines(): Promise<readonly string[]> {
  const found: string[] = [];
  const logged = new Map<number, readonly string[]>();
  for (const [chamberId, ids] of play.answered) {
    const response = await fetch(`${urls[0]}/chambers/${chamberId}/events?limit=10000`);
    const chamber = (await response.text()).split('\n').slice(0, -1);
    logged.set(chamberId, chamber);
    const known = new Set(chamber.map((line) => JSON.parse(line).eventId));
    const missing = [...ids].filter((id) => !known.has(id));
    if (missing.length > 0) found.push(`answered events ${missing.join(', ')} of chamber ${chamberId} are missing`);
  }
  const judged = [
    ...ofAll.map((reader) => reader.judge(logged)),
    ...[...ofChambers].flatMap(([chamberId, readers]) =>
      readers.map((reader) => reader.judge(new Map([[chamberId, logged.get(chamberId) ?? []]]))),
    ),
  ];
  found.push(...(await Promise.all(judged)).flat());
  const streams = [...ofAll, ...[...ofChambers.values()].flat()];
  const sum = (count: (stream: StreamReader) => number) => streams.reduce((total, each) => total + count(each), 0);
  const notes = sum((stream) => stream.notes);
  print(
    `${streams.length} readers of streams opened ${sum((stream) => stream.connections)} and received ${notes} notes`,
  );
  return notes > 0 ? found : [...found, 'no stream had notes'];
}

/** Delays each chunk of data by half the round-trip time. */
async function openSlowProxy(target: URL): Promise<string> {
  const forward = (from: Socket, to: Socket) =>
    from
      .on('data', (data) => setTimeout(() => to.destroyed || to.write(data), DELAY_MS / 2))
      .on('error', () => {})
      .on('close', () => setTimeout(() => to.destroy(), DELAY_MS / 2));
  const proxy = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    forward(near, far);
    forward(far, near);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((proxy.address() as AddressInfo).port);
  return url.href;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
