// After one bit of a closed file is flipped, each read either reports the damage or returns the original bytes.
// DAMAGE_ROUNDS sets the number of bits.
import { copyFileSync } from 'node:fs';
import { get } from 'node:http';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { rebuildLog } from '../durability/log-book.ts';
import { subscribe } from '../kit/consumers.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { asSchema2, flipBit } from './entries.ts';

const DEBATES = 20;
const ROUNDS = Number(process.env['DAMAGE_ROUNDS'] ?? 9);
const LIMIT_MS = 60_000 + ROUNDS * 5_000;

/** Writes a closed log of two chambers, one of them with some debates. */
async function write(finish: (path: string) => void) {
  const path = temporaryDatabase();
  const running = await run({ DATABASE_PATH: path });
  const { id, debate } = await debating(running);
  for (let move = 0; move < DEBATES; move++) await debate(`comment ${move}`);
  const other = await debating(running);
  await running.stop();
  finish(path);
  return { path, id, other: other.id, clock: running.clock };
}

type Written = Awaited<ReturnType<typeof write>>;

function paths(id: number): readonly string[] {
  const tails = ['', '/events', '/events?after=9&limit=3', '/ideas', '/allocations', '/outcome', '/merkle-preview'];
  return [...tails, '/events/7/proof', `/consistency?from=7&to=${DEBATES + 2}`].map((tail) => `/chambers/${id}${tail}`);
}

let copies = 0;

/** Copies the database into the same folder, where the keys of its log are. */
function copyOf(path: string): string {
  const copy = `${path}.${++copies}`;
  copyFileSync(path, copy);
  return copy;
}

/** A copy of the database with one flipped bit in one column of an event. */
function flipped({ path }: Written, place: Parameters<typeof flipBit>[1]): string {
  const copy = copyOf(path);
  flipBit(copy, place);
  return copy;
}

/** Returns status and body of a complete response, or null for an aborted one. */
function fetched(url: string): Promise<{ readonly status: number; readonly body: string } | null> {
  return new Promise((resolve) => {
    get(url, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part) => {
        body += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body })).on('error', () => resolve(null));
    }).on('error', () => resolve(null));
  });
}

async function readAll(path: string, { id, other, clock }: Written) {
  const logged: { readonly msg: string; readonly stream?: number; readonly url?: string }[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const running = await run({ DATABASE_PATH: path, METRICS_PORT: '0' }, clock, logger);
  const answers = new Map<string, Awaited<ReturnType<typeof fetched>>>();
  for (const each of [...paths(id), ...paths(id), `/chambers/${other}/events`, '/chambers', '/ready']) {
    answers.set(each, await fetched(running.url + each));
  }
  const streamed = await stream(running, id);
  const metrics = await fetched(logged.find(({ msg }) => msg === 'metrics')?.url ?? '');
  const [, damagedStreams = ''] = /^chambers_damaged_streams (\d+)$/m.exec(metrics?.body ?? '') ?? [];
  await running.stop();
  const alerts = logged.filter(({ msg }) => msg.startsWith('alert raised'));
  return { answers, streamed, alerts: alerts.map(({ stream: chamberId }) => chamberId), damagedStreams };
}

/** Returns the lines that a WebSocket receives before it is rejected or closed, or until it has all of them. */
async function stream(running: Running, id: number): Promise<string> {
  const opened = await subscribe(running, `/chambers/${id}/stream?after=0`);
  if ('refusal' in opened) return '';
  const { consumer } = opened;
  await Promise.race([consumer.until(DEBATES + 2), consumer.closed()]).catch(() => {});
  return consumer.lines.join('\n');
}

describe.each([
  ['read from memory', () => {}],
  ['read after a rebuild', rebuildLog],
  ['migrated from an earlier schema', asSchema2],
])('a flipped bit in an event that is %s', (_title, finish) => {
  it('a damaged event is never served: its chamber returns 500, and other chambers still work', {
    timeout: LIMIT_MS,
  }, async () => {
    const written = await write(finish);
    const copy = copyOf(written.path);
    const sound = await readAll(copy, written);
    // The chamber has not ended, so there is no outcome.
    for (const [asked, answer] of sound.answers) expect(answer?.status).toBe(asked.endsWith('/outcome') ? 409 : 200);
    let met = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const column = round % 3 === 2 ? 'nodes' : 'line';
      const position = 3 + ((round * 5) % DEBATES);
      const damaged = flipped(written, { column, position, bit: round * 97 });
      const { answers, streamed, alerts, damagedStreams } = await readAll(damaged, written);
      expect(sound.streamed.startsWith(streamed)).toBe(true);
      for (const [path, answer] of answers) {
        const before = sound.answers.get(path);
        if (answer?.status === before?.status) expect({ round, path, answer }).toEqual({ round, path, answer: before });
        else met++;
        if (answer !== null && answer.status !== before?.status) expect(answer.status).toBe(500);
      }
      expect(answers.get(`/chambers/${written.other}/events`)?.status).toBe(200);
      expect(answers.get('/ready')?.status).toBe(200);
      if (column !== 'line') continue;
      expect(answers.get(`/chambers/${written.id}`)?.status).toBe(500);
      expect([alerts, damagedStreams]).toEqual([[written.id], '1']);
    }
    expect(met).toBeGreaterThan(ROUNDS);
  });
});
