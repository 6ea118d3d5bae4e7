// How a database arbitrates between nodes, beyond the port's contract: signatures, chamber ids, registrations and repeated appends.
import type pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { DamagedStreams, StreamDamaged } from '../../../src/log/damage.ts';
import { ALL_CHAMBERS, type AppendResult, type LogEntry, type Registration } from '../../../src/log/log.ts';
import { Appender } from '../../../src/log/postgres/append.ts';
import type { StreamId } from '../../../src/log/stream-id.ts';
import { connect, execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { created, entry, NONE, report } from '../entries.ts';

const ANN = 'did:key:zAnn';
/** The result of an append that found the entry's signature. */
const found = ({ line, signature }: LogEntry, conflicts: ReadonlyMap<StreamId, number>): AppendResult => ({
  conflicts,
  found: new Map([[signature as string, Buffer.from(line).toString()]]),
});

async function open() {
  const url = await temporaryPostgres();
  const store = await openStore(url);
  const client = await connect(url);
  const appender = new Appender({
    logId: store.log.logId,
    damagedStreams: new DamagedStreams(),
    chamberIdMin: 1,
    clock: { now: Date.now },
  });
  const append = (entries: readonly LogEntry[]) => appender.begin({ entries, registrations: [] })(client, false);
  const repeat = (entries: readonly LogEntry[], registrations: readonly Registration[] = []) =>
    appender.begin({ entries, registrations })(client, true);
  return { url, store, client, append, repeat };
}

describe('the chambers of a batch', () => {
  it('the chambers of a batch leave no gap if one creation has a known signature', async () => {
    const { store } = await open();
    const known = created(1);
    await store.log.append({ entries: [known] });
    expect(
      await store.log.append({ entries: [created(2), { ...created(3), signature: known.signature }, created(4)] }),
    ).toEqual(found(known, new Map([...[2, 3, 4].map((id) => [id, 0] as const), [ALL_CHAMBERS, 1]])));
    expect(
      await store.log.append({ entries: [{ ...created(2), signature: known.signature }, entry(2, 2), created(3)] }),
    ).toEqual(found(known, new Map([...[2, 3].map((id) => [id, 0] as const), [ALL_CHAMBERS, 1]])));
    expect([await store.log.lastEventId(2), await store.log.lastEventId(3)]).toEqual([0, 0]);
  });

  it('the chambers of a batch follow the highest chamber', async () => {
    const { store } = await open();
    await store.log.append({ entries: [created(1), created(2), entry(2, 2)] });
    expect(await store.log.append({ entries: [created(2), created(3), entry(ANN, 1)] })).toEqual(
      report([2, 2], [3, 0], [ALL_CHAMBERS, 2]),
    );
    expect(await store.log.append({ entries: [created(3)] })).toEqual(NONE);
  });

  it('the chambers of a batch begin at the minimum id for new chambers', async () => {
    const { url, store: before } = await open();
    await before.log.append({ entries: [created(1)] });
    const store = await openStore(url, { chamberIdMin: 1_000 });
    const other = await openStore(url, { chamberIdMin: 1_000 });
    expect(await store.log.lastEventId(ALL_CHAMBERS)).toBe(999);
    expect(await store.log.append({ entries: [created(1_001)] })).toEqual(report([1_001, 0], [ALL_CHAMBERS, 999]));
    expect(await store.log.append({ entries: [created(1_000), created(1_001)] })).toEqual(NONE);
    expect(await other.log.append({ entries: [created(1_000)] })).toEqual(report([1_000, 1], [ALL_CHAMBERS, 1_001]));
    expect(await other.log.append({ entries: [created(1_002)] })).toEqual(NONE);
    expect(await before.log.append({ entries: [created(1_003)] })).toEqual(NONE);
  });
});

describe('an entry whose signer’s account has grown since the decision', () => {
  it('an entry whose signer’s account has grown conflicts, with the rest of its stream in the batch', async () => {
    const { store } = await open();
    await store.log.append({ entries: [entry(1, 1), entry(2, 1), entry(ANN, 1), entry(ANN, 2)] });
    const account = (lastEventId: number) => ({ account: { did: ANN, lastEventId } });
    const batch = [entry(1, 2, account(2)), entry(1, 3, account(1)), entry(2, 2, account(2))];
    expect(await store.log.append({ entries: batch })).toEqual(report([1, 1], [ANN, 2]));
    expect([await store.log.lastEventId(1), await store.log.lastEventId(2)]).toEqual([1, 2]);
  });
});

describe('concurrent appends to the same streams', () => {
  it('concurrent appends to the same streams have one winner for each event, and none waits forever', async () => {
    const { url, store: first } = await open();
    await first.log.append({ entries: [1, 2, 3, 4, 5, 6].map((id) => entry(id, 1)) });
    const stores = await Promise.all([openStore(url), openStore(url), openStore(url), openStore(url)]);
    // Each node writes two batches at a time, as under load.
    const halves = [
      [1, 3, 5],
      [2, 4, 6],
    ];
    for (let round = 2; round <= 30; round++) {
      const batch = (node: number, half: number[]) => half.map((id) => entry(id, round)).sort(() => (node % 2) - 0.5);
      const appends = stores.flatMap(({ log }, node) =>
        halves.map((half) => log.append({ entries: batch(node, half) })),
      );
      const results = await Promise.all(appends);
      const losses = halves.flat().map((id) => results.filter(({ conflicts }) => conflicts.has(id)).length);
      expect(losses).toEqual(losses.map(() => stores.length - 1));
    }
  });
});

describe('a statement that meets a competitor', () => {
  it('after a conflict, statements check for competitors first until they have found none for a while', async () => {
    const { store, client, append } = await open();
    await store.log.append({ entries: [entry(1, 1), entry(2, 1), entry(2, 2)] });
    const errors = vi.fn();
    const query = client.query.bind(client);
    client.query = ((config: pg.QueryConfig) =>
      query(config).catch((error) => {
        errors(error.constraint);
        throw error;
      })) as typeof client.query;
    expect(await append([entry(1, 2), entry(2, 2)])).toEqual(report([2, 2]));
    expect(errors.mock.calls).toEqual([['events_pkey']]);
    expect(await append([entry(2, 2), entry(1, 3)])).toEqual(report([2, 2]));
    for (let event = 4; event < 4 + 64; event++) expect(await append([entry(1, event)])).toEqual(NONE);
    expect(errors).toHaveBeenCalledTimes(1);
    expect(await append([entry(2, 2), entry(1, 68)])).toEqual(report([2, 2]));
    expect(errors).toHaveBeenCalledTimes(2);
    expect([await store.log.lastEventId(1), await store.log.lastEventId(2)]).toEqual([68, 2]);
  });
});

it('batches for the same tables share one prepared statement, whatever the order of their rows', async () => {
  const { client, append } = await open();
  const member = { kind: 'member', did: ANN, turnOrder: 0, hasCommitted: false, hasRevealed: false } as const;
  const rows = (id: number) => [...created(id).listings, { ...member, chamberId: id }];
  expect(await append([entry(1, 1, { listings: rows(1) })])).toEqual(NONE);
  expect(await append([entry(2, 1, { listings: rows(2).toReversed() })])).toEqual(NONE);
  const prepared = "SELECT FROM pg_prepared_statements WHERE statement LIKE '%INTO events%'";
  expect((await client.query(prepared)).rowCount).toBe(1);
});

describe('a repeated append', () => {
  it('a repeated append succeeds if the rows have its lines, and conflicts if they have others', async () => {
    const { store, repeat } = await open();
    const [ours, theirs, next] = [[created(1), entry(1, 2)], created(2), entry(ANN, 1)];
    const registration = { did: ANN, eventId: 1, signature: 'r'.repeat(32), operatorEmail: undefined };
    await store.log.append({ entries: [...ours, theirs, next], registrations: [registration] });
    await store.log.append({ entries: [entry(1, 3)] });
    const line = Buffer.from('{"another":"line"}');
    expect(await repeat([...ours, next], [registration])).toEqual(NONE);
    const { conflicts: lost, found: lines } = await repeat([...ours, entry(2, 1, { line })]);
    expect([...lost]).toEqual([
      [1, 3],
      [2, 1],
      [ALL_CHAMBERS, 2],
    ]);
    expect([...lines.keys()].toSorted()).toEqual(ours.map(({ signature }) => signature).toSorted());
    expect(await repeat([entry(2, 2), entry(ANN, 1, { line })])).toEqual(report([ANN, 1]));
    expect([await store.log.lastEventId(1), await store.log.lastEventId(2), await store.log.lastEventId(ANN)]).toEqual([
      3, 2, 1,
    ]);
  });

  it('a repeated append writes the missing rows', async () => {
    const { store, repeat } = await open();
    expect(await repeat([entry(1, 1)], [])).toEqual(NONE);
    expect(await store.log.lastEventId(1)).toBe(1);
  });
});

describe('a registration that another node has recorded', () => {
  it('a registration that another node has recorded is not recorded again', async () => {
    const { store } = await open();
    const account = entry(ANN, 1, { signature: null });
    const remembered = { did: ANN, eventId: 1, signature: 'r'.repeat(32), operatorEmail: undefined };
    const result = (...heads: (readonly [StreamId, number])[]) =>
      found({ ...account, signature: remembered.signature }, new Map(heads));
    await store.log.append({ entries: [account], registrations: [remembered] });
    expect(await store.log.append({ entries: [entry(1, 1)], registrations: [remembered] })).toEqual(result());
    const changed = { ...remembered, eventId: 2 };
    const entries = [entry(ANN, 2), entry(1, 2)];
    expect(await store.log.append({ entries, registrations: [changed] })).toEqual(result([ANN, 1]));
    expect(await store.log.append({ entries: [], registrations: [changed] })).toEqual(result());
    expect([await store.log.lastEventId(ANN), await store.log.lastEventId(1)]).toEqual([1, 2]);
  });
});

describe('a registration that changes nothing', () => {
  it('a registration that changes nothing is not recorded if its account has grown since the decision', async () => {
    const { store } = await open();
    await store.log.append({ entries: [entry(ANN, 1), entry(ANN, 2)] });
    const registration = { did: ANN, eventId: 1, signature: 'r'.repeat(32), operatorEmail: 'late@example.org' };
    const signatures = [registration.signature];
    const late = { entries: [], registrations: [{ ...registration, unchangedAt: 1 }], heads: new Map([[ANN, 1]]) };
    expect(await store.log.append(late)).toEqual(report([ANN, 2]));
    expect(await store.log.append({ entries: [], signatures })).toEqual(NONE);
    expect(await store.lists.operatorEmail(ANN)).toBeUndefined();
    const timely = { entries: [], registrations: [{ ...registration, unchangedAt: 2 }], heads: new Map([[ANN, 2]]) };
    expect(await store.log.append(timely)).toEqual(NONE);
    expect((await store.log.append({ entries: [], signatures })).found.size).toBe(1);
    expect(await store.lists.operatorEmail(ANN)).toBe('late@example.org');
  });
});

it('no statement changes or removes an event', async () => {
  const { url, store } = await open();
  await store.log.append({ entries: [entry(1, 1)] });
  for (const sql of ["UPDATE events SET line = ''", 'DELETE FROM events', 'TRUNCATE events']) {
    await expect(execute(url, sql)).rejects.toThrow('events is append-only');
  }
});

it('a line or nodes that fail their checksum damage only their own stream', async () => {
  const { url } = await open();
  const damagedStreams: string[] = [];
  const store = await openStore(url, { onDamage: ({ message }) => void damagedStreams.push(message) });
  const first = entry(1, 1);
  await store.log.append({ entries: [first, entry(2, 1), entry(2, 2)] });
  const change = (sql: string) =>
    execute(url, `ALTER TABLE events DISABLE TRIGGER ALL; ${sql}; ALTER TABLE events ENABLE TRIGGER ALL`);
  await change("UPDATE events SET line = line || '\\x20', nodes = nodes || '\\x00' WHERE stream = '1'");
  await expect(store.log.readPage(1, 0, 9)).rejects.toThrow('event 1 fails its checksum');
  await expect(store.log.readNodes(1, [{ eventId: 1, level: 0 }])).rejects.toThrow(
    'the tree nodes of event 1 fail their checksum',
  );
  const { found: lines } = await store.log.append({ entries: [], signatures: [first.signature as string] });
  expect([...lines]).toEqual([[first.signature, expect.any(StreamDamaged)]]);
  await change("DELETE FROM events WHERE stream = '2' AND event_id = 1");
  await expect(store.log.readPage(2, 0, 9)).rejects.toThrow('event 1 is missing');
  expect([damagedStreams.length, store.log.damagedStreams.size, store.log.damagedStreams.get(3)]).toEqual([
    2,
    2,
    undefined,
  ]);
});

it('the clock of the log never goes back, even if several nodes persist it', async () => {
  const { url, store } = await open();
  await store.meta.persistClock(90_000);
  const other = await openStore(url);
  await other.meta.persistClock(80_000);
  expect((await openStore(url)).meta.lastAt).toBe(90_000);
  expect(Math.abs(other.clock.now() - Date.now())).toBeLessThan(60_000);
});
