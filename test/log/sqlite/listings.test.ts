// Lists and look-ups are correct at every moment, and never scan a table.
import Database from 'better-sqlite3';
import { expect, it, vi } from 'vitest';
import type { ChamberListing } from '../../../projections/listings.ts';
import { phaseBy } from '../../../projections/phase.ts';
import type { Store } from '../../../src/log/store.ts';
import { PHASES } from '../../../src/vocabulary/values.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { created, entry, foreignConnection, listing, openLog } from '../entries.ts';

const CHAMBERS = 250;

/** A chamber created at 1, whose deadlines follow in steps that depend on the id. */
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

async function expectCorrect(store: Store, all: readonly ChamberListing[], now: number): Promise<void> {
  for (const phase of PHASES) {
    const right = all.filter(({ deadlines, isCommitted }) => phaseBy(deadlines, isCommitted, now) === phase);
    const newest = right.toSorted((one, other) => other.chamberId - one.chamberId);
    expect(await store.lists.listChambers({ phase, before: undefined, limit: CHAMBERS, now })).toEqual(newest);
    const before = 100;
    const page = newest.filter(({ chamberId }) => chamberId < before).slice(0, 7);
    expect(await store.lists.listChambers({ phase, before, limit: 7, now })).toEqual(page);
  }
}

it('the list of a phase is correct at every moment, whenever the clock is persisted', async () => {
  const { store, ids } = await filled(temporaryDatabase());
  const all = new Map(ids.map((id) => [id, stepped(id)]));
  for (let now = 1; now < 300; now += 13) {
    await expectCorrect(store, [...all.values()], now);
    if (now % 3 === 0) await store.meta.persistClock(now);
    const id = now;
    all.set(id, stepped(id, true));
    if (now <= CHAMBERS)
      await store.log.append({ entries: [entry(id, 2, { at: now, listings: [stepped(id, true)] })] });
    else all.delete(id);
    await expectCorrect(store, [...all.values()], now);
  }
});

it('no statement of the log scans a table', async () => {
  const preparing = vi.spyOn(Database.prototype, 'prepare');
  await useAll(openLog());
  const prepared = preparing.mock.calls.map(([sql]) => sql);
  // A start prepares these statements only to see whether the tables exist.
  const statements = new Set(prepared.filter((sql) => !/^SELECT 1 FROM \w+$/.test(sql)));
  preparing.mockRestore();
  expect(statements.size).toBeGreaterThan(30);
  const path = temporaryDatabase();
  openLog(path);
  const db = foreignConnection(path);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
  const scan = new RegExp(`^SCAN (${tables.join('|')})\\b`);
  for (const sql of statements) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`) as Database.Statement<unknown[], { detail: string }>;
    const steps = plan.all(...(sql.match(/\?/g)?.map(() => '[]') ?? [])).map(({ detail }) => detail);
    expect({ sql, scans: steps.filter((step) => scan.test(step)) }).toEqual({ sql, scans: [] });
  }
});

/** Executes every statement of an open store. */
async function useAll({ log, lists, callbacks, tree, meta }: Store): Promise<void> {
  const leaf = new Uint8Array(32);
  const snapshot = { eventId: 1, leaf, state: '{}' };
  const signature = 'h'.repeat(32);
  await log.append({
    entries: [{ ...created(1), snapshot }, created(2), entry('did:key:a', 1)],
    registrations: [{ did: 'did:key:a', eventId: 1, signature, operatorEmail: 'a@example.org' }],
    heads: new Map([[1, 0]]),
    signatures: [signature],
  });
  await log.readPage(1, 0, 9);
  await log.readAll(0, 9);
  await log.lastPlace();
  await log.placeOf(1, 1);
  await log.readNodes(1, [{ eventId: 1, level: 0 }]);
  await log.readSnapshot(1);
  await log.dropSnapshot(1);
  for (const phase of PHASES) await lists.listChambers({ phase, before: undefined, limit: 9, now: 1 });
  await lists.listChambers({ phase: undefined, before: 9, limit: 9, now: 1 });
  await lists.listChambersOf('did:key:a', { before: 9, limit: 9 });
  await lists.listGraduatedIdeas({ limit: 9 });
  await lists.findIdea('T', undefined);
  await lists.findIdea('T', 1);
  await lists.listUnsettled(9, 9);
  await lists.listSettled(9);
  await lists.listMemberships('did:key:a', 9);
  await lists.listMembersAt([[1, 0]]);
  await lists.countOpenChambers('did:key:a', 9);
  await lists.agentRecord('did:key:a');
  await lists.operatorEmail('did:key:a');
  await callbacks.put({ did: 'did:key:a', url: 'https://example.org/', since: 1 });
  await callbacks.remember({ key: signature, did: 'did:key:a', created: 9 }, 1);
  await callbacks.forget({ key: signature, did: 'did:key:a', created: 9 });
  await callbacks.listMemberships({ did: '', chamberId: 0 }, 9);
  await callbacks.listChambersWithTurns([1, 2]);
  await callbacks.listMembers([{ chamberId: 1, turnOrder: 0 }]);
  for (const stored of [await callbacks.get('did:key:a')]) if (stored !== undefined) await callbacks.record([stored]);
  await callbacks.remove('did:key:a');
  await meta.remember('name', 'value');
  await meta.recall('name');
  await meta.persistClock(9);
  const tiles = [{ level: 0, index: 0, bytes: leaf }];
  await tree.publish({ from: 0, checkpoint: { size: 1, note: 'note' }, tiles, lease: 'sole' });
  await tree.replaceNote({ size: 1, note: 'note' }, 'another');
  await tree.checkpoint();
  await tree.readTiles([{ level: 0, index: 0 }]);
  await tree.readLeaves(0, 9);
  await tree.readEvents(0, 9);
}
