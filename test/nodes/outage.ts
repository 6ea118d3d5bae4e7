// `npm run test:outage`: PostgreSQL fails in every way while chambers change phase with streams, pages, waits and MCP readers open. No process
// ends, /ready says within seconds what is wrong, all goes on by itself, and no answered line is missing. One of the two nodes is 100 ms
// away from its database, whose role has serializable as its default.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startPostgres } from '../kit/postgres-server.ts';
import { signalTree } from '../kit/process-tree.ts';
import { MAIN } from '../kit/programs.ts';
import { Signer } from '../kit/signer.ts';
import { get, prepare, registrationOf, send, type WireAnswer } from '../kit/wire.ts';
import { PUBLIC_URL, startCluster } from './cluster.ts';

/** The figure to hold is 3 s; a busy machine may take a little longer to be asked. */
const NOTICED_MS_MAX = 3_500;
const HEALED_MS_MAX = 30_000;
const OUTAGE_MS = 3_000;
/** Chambers are in each phase for so long. */
const PHASE_MS = 1_500;
const SLOW_MS = 4_000;
const DELAY_MS = 100;

interface Fault {
  readonly begin: () => Promise<unknown> | unknown;
  readonly end: () => Promise<unknown> | unknown;
  /** What /ready says; undefined for a fault that moves outlive. */
  readonly detail: RegExp | undefined;
}

const problems: string[] = [];
const answered = new Map<string, Set<number>>();
let isOver = false;

const server = await startPostgres();
await sql('CREATE ROLE chambers LOGIN PASSWORD $$secret$$');
await sql('CREATE DATABASE chambers OWNER chambers');
await sql('ALTER ROLE chambers SET default_transaction_isolation = serializable');
const databaseUrl = new URL(server.url);
[databaseUrl.username, databaseUrl.password, databaseUrl.pathname] = ['chambers', 'secret', '/chambers'];

const FAULTS: Readonly<Record<string, Fault>> = {
  killed: { begin: () => server.kill('SIGKILL'), end: () => server.restart(), detail: /cannot be (reached|used)/ },
  frozen: {
    begin: () => signalTree(server.pid(), 'SIGSTOP'),
    end: () => signalTree(server.pid(), 'SIGCONT'),
    detail: /does not respond/,
  },
  revoked: {
    begin: () => sql('REVOKE INSERT ON events FROM chambers', '/chambers'),
    end: () => sql('GRANT INSERT ON events TO chambers', '/chambers'),
    detail: /lacks a permission/,
  },
  'read-only': {
    begin: () => setting('default_transaction_read_only = on'),
    end: () => setting('default_transaction_read_only = off'),
    detail: /read-only/,
  },
  'full (as an append meets it)': {
    begin: () => sql(FILL, '/chambers'),
    end: () => sql('DROP TRIGGER full_disk ON events', '/chambers'),
    detail: /disk of the database is full/,
  },
};

const FILL = `CREATE OR REPLACE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
  CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION fill()`;

const farUrl = await openSlowProxy(databaseUrl);
const clusters = [
  await startCluster({ databaseUrl: databaseUrl.href, nodes: 1, program: MAIN }),
  await startCluster({ databaseUrl: farUrl, nodes: 1, program: MAIN }),
];
const urls = clusters.flatMap(({ nodes }) => nodes.map(({ url }) => url));
try {
  const agents = await Promise.all(urls.map(register));
  const work = [...agents.map((by, index) => play(urls[index] as string, by)), ...urls.flatMap(openReaders)];
  await sleep(2 * PHASE_MS);
  for (const [name, fault] of Object.entries(FAULTS)) await pass(name, fault);
  isOver = true;
  await Promise.all(work);
  for (const [path, ids] of answered) await requireLines(path, ids);
} finally {
  isOver = true;
  problems.push(...clusters.flatMap((cluster) => cluster.problems));
  for (const cluster of clusters) await cluster.stop();
  await server.stop();
}
const lines = [...answered.values()].reduce((sum, ids) => sum + ids.size, 0);
process.stdout.write(`${lines} answered moves in ${answered.size} chambers; ${problems.length} problems\n`);
for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
process.exit(problems.length > 0 || lines === 0 ? 1 : 0);

async function pass(name: string, { begin, end, detail }: Fault): Promise<void> {
  const begun = performance.now();
  await begin();
  const noticed = await Promise.all(
    urls.map((url) => becomes(url, 503, { since: begun, max: NOTICED_MS_MAX, detail })),
  );
  await sleep(Math.max(0, OUTAGE_MS - (performance.now() - begun)));
  await end();
  const ended = performance.now();
  const healed = await Promise.all(
    urls.map((url) => becomes(url, 200, { since: ended, max: HEALED_MS_MAX, detail: undefined })),
  );
  const text = (millis: readonly number[]) => millis.map((each) => `${Math.round(each)} ms`).join(', ');
  process.stdout.write(`${name}: /ready says so after ${text(noticed)}, and is 200 again after ${text(healed)}\n`);
}

interface Wanted {
  readonly since: number;
  readonly max: number;
  readonly detail: RegExp | undefined;
}

async function becomes(url: string, status: number, { since, max, detail }: Wanted): Promise<number> {
  let last: WireAnswer | undefined;
  while (performance.now() - since < max) {
    last = await get(url, '/ready', AbortSignal.timeout(SLOW_MS)).catch(() => undefined);
    if (last?.status === status && (detail === undefined || detail.test(last.body.detail)))
      return performance.now() - since;
    await sleep(50);
  }
  problems.push(
    `/ready was ${last?.status} ${JSON.stringify(last?.body)} after ${max} ms, not ${status} ${detail ?? ''}`,
  );
  return max;
}

/** Chambers one after another: created, joined and talked in while their phases pass. */
async function play(url: string, by: Signer): Promise<void> {
  while (!isOver) {
    const created = await persist(url, () => sign('/chambers', by, { name: 'Outage', ...deadlines() }), true);
    // An outage has outlasted its lobby.
    if (created.status !== 200) continue;
    const { chamberId } = created.body;
    const path = `/chambers/${chamberId}`;
    const ids = new Set<number>();
    answered.set(path, ids);
    await persist(url, () => sign(`${path}/join`, by, {}), true);
    for (let move = 0; !isOver; move++) {
      const { status, body } = await persist(url, () => sign(`${path}/debate`, by, { comment: `${move}` }), true);
      if (status === 200) ids.add(body.eventId);
      else if (body.error === 'FORUM_ERR_MEMBER' || /ALLOCATE/.test(body.detail)) break;
      await sleep(50);
    }
  }
}

function deadlines() {
  const at = (phases: number) => new Date(Date.now() + phases * PHASE_MS).toISOString();
  const names = [
    'lobbyDeadline',
    'proposalDeadline',
    'debateDeadline',
    'allocateCommitDeadline',
    'allocateRevealDeadline',
  ];
  const phases = [2, 2, 5, 6, 7];
  return {
    ...Object.fromEntries(names.map((name, index) => [name, at(phases[index] as number)])),
    minBackersForGraduation: 1,
  };
}

function sign(path: string, by: Signer, body: unknown) {
  return prepare('POST', path, { by, body, publicUrl: PUBLIC_URL });
}

/** The same bytes until they have an answer other than 503. */
async function persist(url: string, make: () => ReturnType<typeof prepare>, mayFail = false): Promise<WireAnswer> {
  const wire = make();
  for (const until = performance.now() + 60_000; performance.now() < until; await sleep(100)) {
    const answer = await send(url, wire, AbortSignal.timeout(SLOW_MS)).catch(() => undefined);
    if (answer === undefined || answer.status === 503) continue;
    if (answer.status !== 200 && !mayFail)
      problems.push(`${wire.path} was ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  }
  problems.push(`${wire.path} had no answer for a minute`);
  isOver = true;
  return { status: 0, body: {}, headers: new Headers() };
}

async function register(url: string): Promise<Signer> {
  const by = new Signer();
  await persist(url, () => prepare('POST', '/register', { body: registrationOf(by), publicUrl: PUBLIC_URL }));
  return by;
}

/** A stream with notes, a page, a wait of the model's tool and a follower of all chambers, each opened again when it ends. */
function openReaders(url: string): readonly Promise<void>[] {
  const html = { headers: { accept: 'text/html' } };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_chambers', arguments: {} } };
  const mcp = {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(call),
  };
  const newest = () => [...answered.keys()].at(-1) ?? '/chambers/1';
  return [
    keepReading(() =>
      fetch(`${url}${newest()}/events?notes=1`, { ...signal(), headers: { accept: 'text/event-stream' } }),
    ),
    keepReading(() => fetch(`${url}${newest()}`, { ...signal(), ...html })),
    keepReading(() => fetch(`${url}/events?after=0`, signal())),
    keepReading(() => fetch(`${url}/mcp`, { ...signal(), ...mcp })),
  ];
}

function signal() {
  return { signal: AbortSignal.timeout(SLOW_MS) };
}

async function keepReading(open: () => Promise<Response>): Promise<void> {
  for (; !isOver; await sleep(100)) {
    await open()
      .then((response) => response.text())
      .catch(() => {});
  }
}

async function requireLines(path: string, ids: ReadonlySet<number>): Promise<void> {
  const response = await fetch(`${urls[0]}${path}/events?limit=10000`);
  const found = new Set(
    (await response.text())
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).eventId),
  );
  const missing = [...ids].filter((id) => !found.has(id));
  if (missing.length > 0) problems.push(`answered events ${missing.join(', ')} of ${path} are missing`);
}

/** Each piece of data takes half of the delay in its direction. */
async function openSlowProxy(target: URL): Promise<string> {
  const pass = (from: Socket, to: Socket) =>
    from
      .on('data', (data) => setTimeout(() => to.destroyed || to.write(data), DELAY_MS / 2))
      .on('error', () => {})
      .on('close', () => setTimeout(() => to.destroy(), DELAY_MS / 2));
  const proxy = createServer({ noDelay: true }, (near) => {
    const far = connect({ port: Number(target.port), host: target.hostname, noDelay: true });
    pass(near, far);
    pass(far, near);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((proxy.address() as AddressInfo).port);
  return url.href;
}

async function sql(text: string, database = '/postgres'): Promise<void> {
  const url = new URL(server.url);
  url.pathname = database;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** Sessions that run follow a change of the server's defaults. The superuser's own session must be able to change it back. */
async function setting(text: string): Promise<void> {
  const url = new URL(server.url);
  url.searchParams.set('options', '-c default_transaction_read_only=off');
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query(`ALTER SYSTEM SET ${text}`);
  await client.query('SELECT pg_reload_conf()').finally(() => client.end());
}
