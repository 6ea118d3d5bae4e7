// Lists and look-ups: right at every moment, however late the rows of the phases are, and never a scan of a table.
import Database from 'better-sqlite3';
import { expect, it, vi } from 'vitest';
import type { ChamberListing } from '../../../projections/listings.ts';
import { phaseBy } from '../../../projections/phase.ts';
import { rebuildDatabase } from '../../../src/log/sqlite/repair.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import type { Store } from '../../../src/log/store.ts';
import { PHASES } from '../../../src/vocabulary/values.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { openChamber } from '../../kit/chambers.ts';
import { atEnd, temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { asSchema2, entry, intrude, listing, openLog } from '../entries.ts';

const CHAMBERS = 250;

/** Its deadlines come one, two … of its steps after its creation at 1. */
function stepped(chamberId: number, isCommitted = false): ChamberListing {
  const step = 10 + (chamberId % 7) * 5;
  const [lobby, proposal, debate, commit, reveal] = [1, 2, 2 + (chamberId % 3), 5, 6].map((n) => 1 + n * step);
  const deadlines = {
    lobbyDeadline: lobby as number,
    proposalDeadline: proposal as number,
    debateDeadline: debate as number,
    allocateCommitDeadline: commit as number,
    allocateRevealDeadline: reveal as number,
  };
  return listing(chamberId, { deadlines, ends: deadlines, isCommitted, isSettled: isCommitted });
}

async function filled(path: string) {
  const store = openLog(path);
  const ids = Array.from({ length: CHAMBERS }, (_, index) => index + 1);
  await store.log.append({ entries: ids.map((id) => entry(id, 1, { at: 1, listings: [stepped(id)] })) });
  return { store, ids };
}

async function expectRight(store: Store, all: readonly ChamberListing[], now: number): Promise<void> {
  for (const phase of PHASES) {
    const right = all.filter(({ deadlines, isCommitted }) => phaseBy(deadlines, isCommitted, now) === phase);
    const newest = right.toSorted((one, other) => other.chamberId - one.chamberId);
    expect(await store.lists.listChambers({ phase, before: undefined, limit: CHAMBERS, now })).toEqual(newest);
    const before = 100;
    const page = newest.filter(({ chamberId }) => chamberId < before).slice(0, 7);
    expect(await store.lists.listChambers({ phase, before, limit: 7, now })).toEqual(page);
  }
}

it('a list of a phase is right at every moment, before, while and after its rows are moved on', async () => {
  const { store, ids } = await filled(temporaryDatabase());
  const all = new Map(ids.map((id) => [id, stepped(id)]));
  for (let now = 1; now < 300; now += 13) {
    await expectRight(store, [...all.values()], now);
    if (now % 3 === 0) await store.meta.persistClock(now);
    const id = now;
    all.set(id, stepped(id, true));
    if (now <= CHAMBERS)
      await store.log.append({ entries: [entry(id, 2, { at: now, listings: [stepped(id, true)] })] });
    else all.delete(id);
    await expectRight(store, [...all.values()], now);
  }
});

it('overdue rows are moved on by themselves, a hundred at a time', async () => {
  const path = temporaryDatabase();
  const { store } = await filled(path);
  const overdue = intrude(path).prepare('SELECT count(*) FROM chamber_phases WHERE next_deadline <= 1000').pluck();
  await store.meta.persistClock(1_000);
  expect(overdue.get()).toBe(CHAMBERS - 100);
  await eventually(() => expect(overdue.get()).toBe(0), 10_000);
});

it('no statement of the log scans a table', () => {
  const path = temporaryDatabase();
  const preparing = vi.spyOn(Database.prototype, 'prepare');
  const store = openSqliteStore(path);
  const statements = preparing.mock.calls.map(([sql]) => sql);
  preparing.mockRestore();
  atEnd(() => store.close());
  expect(statements.length).toBeGreaterThan(30);
  const db = intrude(path);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
  const scan = new RegExp(`^SCAN (${tables.join('|')}|entry)\\b`);
  for (const sql of statements) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`) as Database.Statement<unknown[], { detail: string }>;
    const names = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]);
    const values = names.length > 0 ? [Object.fromEntries(names)] : sql.match(/\?/g)?.map(() => 1);
    const steps = plan.all(...(values ?? [])).map(({ detail }) => detail);
    expect({ sql, scans: steps.filter((step) => scan.test(step)) }).toEqual({ sql, scans: [] });
  }
});

describePhases();

/** Rows of a real log, migrated, late, rebuilt and damaged. */
function describePhases(): void {
  async function lived() {
    const path = temporaryDatabase();
    const service = new TestService({ path });
    const ann = await service.agent();
    const id = await openChamber(service, [ann]);
    service.clock.advance(10 ** 9);
    await service.forum.persistClock();
    await service.close();
    const rows = () => intrude(path).prepare('SELECT * FROM chamber_phases').all();
    const faults = () => faultsOf(path).map(({ stream, problem }) => `${stream}: ${problem}`);
    return { path, id, rows, faults };
  }

  it('rebuild and a migration of schema 2 leave the rows that the clock calls for', async () => {
    const { path, rows, faults } = await lived();
    const before = rows();
    expect(before).toHaveLength(1);
    expect(before).not.toMatchObject([{ phase: 'LOBBY' }]);
    rebuildDatabase(path);
    expect(rows()).toEqual(before);
    asSchema2(path);
    await openSqliteStore(path).close();
    expect(rows()).toEqual(before);
    expect(faults()).toEqual([]);
  });

  it.each([
    ['ahead of the clock', "UPDATE chamber_phases SET phase = 'COMMITTED', next_deadline = NULL"],
    ['with another deadline', 'UPDATE chamber_phases SET next_deadline = 7'],
    ['missing', 'DELETE FROM chamber_phases'],
    ['too many', "INSERT INTO chamber_phases VALUES (99, 'LOBBY', 5)"],
  ])('fsck names a row that is %s, but not one that is late', async (_title, sql) => {
    const { path, id, faults } = await lived();
    const lobbyDeadline = intrude(path).prepare('SELECT lobby_deadline FROM chambers').pluck().get();
    intrude(path).prepare("UPDATE chamber_phases SET phase = 'LOBBY', next_deadline = ?").run(lobbyDeadline);
    expect(faults()).toEqual([]);
    intrude(path).exec(sql);
    const chamber = sql.includes('99') ? 99 : id;
    expect(faults()).toEqual([`${chamber}: table chamber_phases does not match the log: run chambers rebuild`]);
  });
}
