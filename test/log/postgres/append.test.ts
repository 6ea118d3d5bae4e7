// What decides between nodes, beyond the port: signatures, chamber ids, registrations, and appends that are repeated.
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import type { LogEntry, Registration } from '../../../src/log/log.ts';
import { Appender } from '../../../src/log/postgres/append.ts';
import { execute, openLog, temporaryPostgres } from '../../kit/postgres.ts';
import { atEnd } from '../../kit/temporary.ts';
import { entry } from '../entries.ts';

const ANN = 'did:key:zAnn';
const NONE = new Set();

async function open() {
  const url = await temporaryPostgres();
  const log = await openLog(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  atEnd(() => client.end());
  const appender = new Appender();
  const append = (entries: readonly LogEntry[]) => appender.append(client, { entries, registrations: [] }, false);
  const repeat = (entries: readonly LogEntry[], registrations: readonly Registration[] = []) =>
    appender.append(client, { entries, registrations }, true);
  return { url, log, client, append, repeat };
}

describe('chambers that a batch creates', () => {
  it('leave no gap when one of them is known by its signature', async () => {
    const { log } = await open();
    const known = entry(1, 1);
    await log.append([known]);
    expect(await log.append([entry(2, 1), entry(3, 1, { signature: known.signature }), entry(4, 1)])).toEqual(
      new Set([2, 3, 4]),
    );
    expect(await log.append([entry(2, 1, { signature: known.signature }), entry(2, 2), entry(3, 1)])).toEqual(
      new Set([2, 3]),
    );
    expect([await log.lastEventId(2), await log.lastEventId(3)]).toEqual([0, 0]);
  });

  it('follow the highest chamber', async () => {
    const { log } = await open();
    expect(await log.append([entry(2, 1)])).toEqual(new Set([2]));
    expect(await log.append([entry(1, 1), entry(2, 1), entry(2, 2), entry(ANN, 1)])).toEqual(NONE);
    expect(await log.append([entry(4, 1), entry(ANN, 2)])).toEqual(new Set([4]));
    expect(await log.append([entry(2, 1), entry(3, 1), entry(ANN, 3)])).toEqual(new Set([2, 3]));
    expect(await log.append([entry(3, 1)])).toEqual(NONE);
  });
});

describe('an entry whose signer’s account has grown since it was decided', () => {
  it('is in conflict with all of its stream in the batch', async () => {
    const { log } = await open();
    await log.append([entry(1, 1), entry(2, 1), entry(ANN, 1), entry(ANN, 2)]);
    const account = (lastEventId: number) => ({ account: { did: ANN, lastEventId } });
    const batch = [entry(1, 2, account(2)), entry(1, 3, account(1)), entry(2, 2, account(2))];
    expect(await log.append(batch)).toEqual(new Set([1]));
    expect([await log.lastEventId(1), await log.lastEventId(2)]).toEqual([1, 2]);
  });
});

describe('an entry whose signature is known', () => {
  it('is in conflict with all of its stream in the batch, wherever it stands', async () => {
    const { log } = await open();
    const known = entry(1, 2);
    await log.append([entry(1, 1), entry(2, 1), known]);
    const again = { signature: known.signature };
    expect(await log.append([entry(1, 3, again), entry(1, 4), entry(2, 2)])).toEqual(new Set([1]));
    expect(await log.append([entry(1, 3), entry(1, 4, again), entry(2, 3)])).toEqual(new Set([1]));
    expect([await log.lastEventId(1), await log.lastEventId(2)]).toEqual([2, 3]);
  });
});

describe('of many appends at once to the same streams', () => {
  it('one wins each event, and none waits for ever', async () => {
    const { url, log: first } = await open();
    await first.append([1, 2, 3, 4, 5, 6].map((id) => entry(id, 1)));
    const logs = await Promise.all([openLog(url), openLog(url), openLog(url), openLog(url)]);
    // Two batches at a time, as a node writes them under load.
    const halves = [
      [1, 3, 5],
      [2, 4, 6],
    ];
    for (let round = 2; round <= 30; round++) {
      const batch = (node: number, half: number[]) => half.map((id) => entry(id, round)).sort(() => (node % 2) - 0.5);
      const appends = logs.flatMap((log, node) => halves.map((half) => log.append(batch(node, half))));
      const conflicts = await Promise.all(appends);
      const losses = halves.flat().map((id) => conflicts.filter((lost) => lost.has(id)).length);
      expect(losses).toEqual(losses.map(() => logs.length - 1));
    }
  });
});

describe('a statement that meets a competitor', () => {
  it('fails once, and those after it look for competitors first until they have met none for a while', async () => {
    const { log, client, append } = await open();
    await log.append([entry(1, 1), entry(2, 1), entry(2, 2)]);
    const errors = vi.fn();
    const query = client.query.bind(client);
    client.query = ((config: pg.QueryConfig) =>
      query(config).catch((error) => {
        errors(error.constraint);
        throw error;
      })) as typeof client.query;
    expect(await append([entry(1, 2), entry(2, 2)])).toEqual(new Set([2]));
    expect(errors.mock.calls).toEqual([['events_pkey']]);
    expect(await append([entry(2, 2), entry(1, 3)])).toEqual(new Set([2]));
    for (let event = 4; event < 4 + 64; event++) expect(await append([entry(1, event)])).toEqual(NONE);
    expect(errors).toHaveBeenCalledTimes(1);
    expect(await append([entry(2, 2), entry(1, 68)])).toEqual(new Set([2]));
    expect(errors).toHaveBeenCalledTimes(2);
    expect([await log.lastEventId(1), await log.lastEventId(2)]).toEqual([68, 2]);
  });
});

describe('a repeated append', () => {
  it('has succeeded where the rows hold its lines, and conflicts where they hold others', async () => {
    const { log, repeat } = await open();
    const [ours, theirs, next] = [[entry(1, 1), entry(1, 2)], entry(2, 1), entry(ANN, 1)];
    const registration = { did: ANN, eventId: 1, signature: 'r'.repeat(32), operatorEmail: undefined };
    await log.append([...ours, theirs, next], [registration]);
    await log.append([entry(1, 3)]);
    const line = Buffer.from('{"another":"line"}');
    expect(await repeat([...ours, next], [registration])).toEqual(NONE);
    expect(await repeat([...ours, entry(2, 1, { line })])).toEqual(new Set([1, 2]));
    expect(await repeat([entry(2, 2), entry(ANN, 1, { line })])).toEqual(new Set([ANN]));
    expect([await log.lastEventId(1), await log.lastEventId(2), await log.lastEventId(ANN)]).toEqual([3, 2, 1]);
  });

  it('writes what is not there yet', async () => {
    const { log, repeat } = await open();
    expect(await repeat([entry(1, 1)], [])).toEqual(NONE);
    expect(await log.lastEventId(1)).toBe(1);
  });
});

describe('a registration that another node has remembered', () => {
  it('is remembered once with its event, and conflicts with another event', async () => {
    const { log } = await open();
    const remembered = { did: ANN, eventId: 1, signature: 'r'.repeat(32), operatorEmail: undefined };
    await log.append([entry(ANN, 1)], [remembered]);
    expect(await log.append([entry(1, 1)], [remembered])).toEqual(NONE);
    const changed = { ...remembered, eventId: 2 };
    expect(await log.append([entry(ANN, 2), entry(1, 2)], [changed])).toEqual(new Set([ANN]));
    expect(await log.append([], [changed])).toEqual(new Set([ANN]));
    expect([await log.lastEventId(ANN), await log.lastEventId(1)]).toEqual([1, 2]);
  });
});

it('nothing changes or removes an event', async () => {
  const { url, log } = await open();
  await log.append([entry(1, 1)]);
  for (const sql of ["UPDATE events SET line = ''", 'DELETE FROM events', 'TRUNCATE events']) {
    await expect(execute(url, sql)).rejects.toThrow('events is append-only');
  }
});

it('a line and nodes that are not as they were written are damage, of their stream alone', async () => {
  const { url } = await open();
  const damages: string[] = [];
  const log = await openLog(url, { onDamage: ({ message }) => void damages.push(message) });
  const first = entry(1, 1);
  await log.append([first, entry(2, 1), entry(2, 2)]);
  const change = (sql: string) =>
    execute(url, `ALTER TABLE events DISABLE TRIGGER ALL; ${sql}; ALTER TABLE events ENABLE TRIGGER ALL`);
  await change("UPDATE events SET line = line || '\\x20', nodes = nodes || '\\x00' WHERE stream = '1'");
  await expect(log.readPage(1, 0, 9)).rejects.toThrow('event 1 is not as it was written');
  await expect(log.readNodes(1, [{ eventId: 1, level: 0 }])).rejects.toThrow('other tree nodes');
  expect((await log.lookUp([], [first.signature as string])).found.get(first.signature as string)).toBeInstanceOf(
    Error,
  );
  await change("DELETE FROM events WHERE stream = '2' AND event_id = 1");
  await expect(log.readPage(2, 0, 9)).rejects.toThrow('event 1 is missing');
  expect([damages.length, log.damagedStreams, log.damageOf(3)]).toEqual([2, 2, undefined]);
});

it('the clock of the log never falls, also when several nodes persist it', async () => {
  const { url, log } = await open();
  await log.persistClock(90_000);
  const other = await openLog(url);
  await other.persistClock(80_000);
  expect((await openLog(url)).lastAt).toBe(90_000);
  expect(Math.abs(other.clock.now() - Date.now())).toBeLessThan(60_000);
});
