// Tests GET /events: the lines of all chambers over WebSocket, server-sent events and pages, through disconnects and kill -9.
import { describe, expect, it } from 'vitest';
import { debateOf, Load, must, seatPlayers } from '../durability/players.ts';
import { HOUR } from '../kit/clock.ts';
import { consume, openSource, page, subscribe, take } from '../kit/consumers.ts';
import { Random } from '../kit/random.ts';
import { call, createChamber, newAgent, type Running, run } from '../kit/service.ts';
import { startProcess } from '../kit/service-process.ts';
import { onSqliteOnly } from '../kit/store.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

onSqliteOnly('the order of all chambers’ lines is that of one process');

const DISCONNECTS = Number(process.env['FIREHOSE_DISCONNECTS'] ?? 50);
const KILLS = 3;
const CHAMBERS = Number(process.env['FIREHOSE_CHAMBERS'] ?? 40);
/** A consumer reads at most this many lines meanwhile, so that it never waits for lines that nobody adds. */
const MOVES_PER_READ = 12;
const LIMIT_MS = 180_000 + 400 * CHAMBERS + 500 * DISCONNECTS;

interface Line {
  readonly chamberId: number;
  readonly eventId: number;
}

function cursorOf(line: string): string {
  const { chamberId, eventId } = JSON.parse(line) as Line;
  return `${chamberId}:${eventId}`;
}

/** Groups the lines by chamber, in the order received. */
function byChamber(lines: readonly string[]): ReadonlyMap<number, readonly string[]> {
  const chambers = new Map<number, string[]>();
  for (const line of lines) {
    const { chamberId } = JSON.parse(line) as Line;
    chambers.set(chamberId, [...(chambers.get(chamberId) ?? []), line]);
  }
  return chambers;
}

/** Resolves to the lines in each chamber's own pages. */
async function storedByChamber(running: { readonly url: string }, ids: Iterable<number>) {
  const stored = new Map<number, readonly string[]>();
  for (const id of ids) stored.set(id, await page(running, `/chambers/${id}/events?limit=10000`));
  return stored;
}

/** Runs a service whose log interleaves the lines of two chambers and of accounts. */
async function runInterleaved() {
  const running = await run();
  const [one, two] = await debatingChambers(running, 2);
  await two?.('two: third');
  await one?.('one: third');
  const cursors = ['1:1', '1:2', '2:1', '2:2', '2:3', '1:3'];
  return { running, debate: async () => one?.('another'), cursors };
}

describe('GET /events', () => {
  it('GET /events returns the lines of all chambers unchanged, without accounts', async () => {
    const { running, cursors } = await runInterleaved();
    const lines = await page(running, '/events');
    expect(lines.map(cursorOf)).toEqual(cursors);
    expect(byChamber(lines)).toEqual(await storedByChamber(running, [1, 2]));
  });

  it('a page of all chambers continues after the last line of the previous one', async () => {
    const { running, cursors } = await runInterleaved();
    const lines: string[] = [];
    for (let after = '0'; ; after = cursorOf(lines.at(-1) ?? '')) {
      const next = await page(running, `/events?after=${after}&limit=4`);
      lines.push(...next);
      if (next.length < 4) break;
    }
    expect(lines.map(cursorOf)).toEqual(cursors);
    expect(await page(running, '/events?after=1:3')).toEqual([]);
  });

  it('GET /events skips more account events than one read covers', async () => {
    const { running, debate, cursors } = await runInterleaved();
    const { log } = running.service.forum.store;
    const place = await log.lastPlace();
    const at = running.clock.read();
    const entries = Array.from({ length: 4_500 }, (_, index) => {
      const line = Buffer.from('{}');
      return { stream: `did:key:z${index}`, eventId: 1, at, line, signature: null, nodes: null, listings: [] };
    });
    const source = await openSource(running, '/events?after=1:3');
    await log.append({ entries });
    expect((await log.readAll(place, 10)).count).toBe(0);
    await debate();
    expect((await page(running, '/events')).map(cursorOf)).toEqual([...cursors, '1:4']);
    expect((await take(source, 1)).map(({ id }) => id)).toEqual(['1:4']);
  });

  it('a WebSocket at /events gets history and live lines, or only live lines without a cursor', async () => {
    const { running, debate, cursors } = await runInterleaved();
    const [all, live] = [await consume(running, '/events?after=0'), await consume(running, '/events')];
    await debate();
    await all.until(7);
    await live.until(1);
    expect(all.lines.map(cursorOf)).toEqual([...cursors, '1:4']);
    expect(live.lines).toEqual(all.lines.slice(-1));
  });

  it('server-sent events of all chambers have the cursor as id, and resume with Last-Event-ID', async () => {
    const { running, cursors } = await runInterleaved();
    const source = await openSource(running, '/events?after=0', { 'last-event-id': '2:1' });
    const received = await take(source, 3);
    expect(received.map(({ id }) => id)).toEqual(cursors.slice(3));
    expect(received.map(({ data }) => cursorOf(data))).toEqual(cursors.slice(3));
  });

  it('a stream of all chambers closes with 1012 when the service stops', async () => {
    const { running } = await runInterleaved();
    const consumer = await consume(running, '/events');
    const [code] = await Promise.all([consumer.closed(), running.stop()]);
    expect(code).toBe(1012);
  });

  it.each([
    ['?after=1', 400, 'FORUM_ERR_VALIDATION'],
    ['?after=1:0', 400, 'FORUM_ERR_VALIDATION'],
    ['?after=01:1', 400, 'FORUM_ERR_VALIDATION'],
    ['?after=1:1:1', 400, 'FORUM_ERR_VALIDATION'],
    ['?after=1:9', 400, 'FORUM_ERR_VALIDATION'],
    ['?after=9:1', 400, 'FORUM_ERR_VALIDATION'],
    ['?end=settled', 400, 'FORUM_ERR_VALIDATION'],
    ['?after=0&log=another', 409, 'FORUM_ERR_CONFLICT'],
    ['?after=abc&log=another', 400, 'FORUM_ERR_VALIDATION'],
  ])('GET /events%s is rejected with %i', async (query, status, error) => {
    const { running } = await runInterleaved();
    const rejected = { status, body: { error } };
    expect(await subscribe(running, `/events${query}`)).toMatchObject({ refusal: rejected });
    for (const accept of ['text/event-stream', '*/*']) {
      const response = await fetch(`${running.url}/events${query}`, { headers: { accept } });
      expect({ status: response.status, body: await response.json() }).toMatchObject(rejected);
    }
  });

  it('GET /events accepts a limit for pages only', async () => {
    const { running } = await runInterleaved();
    expect((await page(running, '/events?limit=1')).length).toBe(1);
    for (const limit of ['0', '10001']) expect((await fetch(`${running.url}/events?limit=${limit}`)).status).toBe(400);
    expect(await subscribe(running, '/events?limit=1')).toMatchObject({ refusal: { status: 400 } });
  });
});

describe('a consumer of all chambers that resumes by its last line', { timeout: LIMIT_MS }, () => {
  it(`a consumer gets each line of ${CHAMBERS} chambers once, in its chamber's order, through ${DISCONNECTS} disconnects and ${KILLS} kills`, async () => {
    const path = temporaryDatabase();
    const players = await seatPlayers(path, CHAMBERS / 2);
    const random = new Random(4);
    const lines: string[] = [];
    const cursor = () => (lines.length === 0 ? '0' : cursorOf(lines.at(-1) as string));
    let service = await startProcess(path);
    for (let disconnect = 1; disconnect <= DISCONNECTS; disconnect++) {
      const wanted = 1 + random.below(MOVES_PER_READ);
      const moves = Array.from({ length: MOVES_PER_READ }, () => debateOf(random.pick(players), { comment: 'noise' }));
      const reading = readSome(service, { cursor: cursor(), wanted, kind: disconnect % 3 });
      await Promise.all(moves.map((move) => must(service.url, move)));
      lines.push(...(await reading));
      if (disconnect % Math.floor(DISCONNECTS / KILLS) !== 0) continue;
      const consumer = await consume(service, `/events?after=${cursor()}`);
      const load = new Load(service.url, players.slice(disconnect % 8, (disconnect % 8) + 8), random);
      await load.answered(60);
      await service.kill('SIGKILL');
      await Promise.all(load.playing);
      await consumer.closed();
      lines.push(...consumer.lines);
      service = await startProcess(path);
    }
    for (let isEnd = false; !isEnd; ) {
      const rest = await page(service, `/events?after=${cursor()}&limit=10000`);
      lines.push(...rest);
      isEnd = rest.length < 10_000;
    }
    const received = byChamber(lines);
    expect(received.size).toBe(CHAMBERS);
    expect(received).toEqual(await storedByChamber(service, received.keys()));
  });
});

/** Reads some lines after the cursor over one of three kinds of connection, then cuts the connection. */
async function readSome(
  service: { readonly url: string },
  { cursor, wanted, kind }: { readonly cursor: string; readonly wanted: number; readonly kind: number },
): Promise<readonly string[]> {
  if (kind === 0) {
    const source = await openSource(service, '/events', { 'last-event-id': cursor });
    const events = await take(source, wanted);
    await source.return(undefined);
    return events.map(({ data }) => data);
  }
  if (kind === 1) return await page(service, `/events?after=${cursor}&limit=${wanted}`);
  const consumer = await consume(service, `/events?after=${cursor}`);
  await consumer.until(wanted);
  consumer.socket.terminate();
  return consumer.lines;
}

/** Opens chambers in DEBATE, with events 1 and 2; resolves to functions that add an event to each. */
async function debatingChambers(running: Running, count: number) {
  const by = await newAgent(running);
  const ids: number[] = [];
  while (ids.length < count) {
    const id = await createChamber(running, by);
    await call(running, by, ['POST', `/chambers/${id}/join`]);
    ids.push(id);
  }
  running.clock.advance(2 * HOUR);
  return ids.map((id) => (comment: string) => call(running, by, ['POST', `/chambers/${id}/debate`, { comment }]));
}
