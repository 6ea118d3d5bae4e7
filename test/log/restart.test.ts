// Everything is a fold of the log: after a restart every answer is as it was, and the derived tables are what the lines say.
import { describe, expect, it } from 'vitest';
import { rebuildDatabase } from '../../src/log/rebuild.ts';
import { DERIVED_TABLES } from '../../src/log/schema.ts';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import { House } from '../kit/house.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { intrude } from './entries.ts';

/** Two chambers: one lived to its end with a token, one in its lobby. */
async function lived(path: string) {
  const house = new House({ path });
  const [ann, bob] = [await house.agent(), await house.agent()];
  const id = await openChamber(house, [ann, bob]);
  const move = (by: typeof ann, operation: string, body?: unknown) =>
    house.must('POST', `/chambers/${id}/${operation}`, { by, body });
  await enterPhase(house, id, 'PROPOSAL');
  await move(ann, 'propose', { name: 'One', ticker: 'ONE' });
  await move(ann, 'pass');
  await move(bob, 'propose', { name: 'Two', ticker: 'TWO' });
  await enterPhase(house, id, 'DEBATE');
  await move(ann, 'debate', { ideaId: 'idea-2', comment: 'yes', refinement: { a: [1] } });
  await enterPhase(house, id, 'ALLOCATE_COMMIT');
  const allocation = allocationOf(id, bob, { 'idea-1': 7_000, 'idea-2': 0 });
  await move(bob, 'allocate/commit', allocation.commit);
  await enterPhase(house, id, 'ALLOCATE_REVEAL');
  await move(bob, 'allocate/reveal', allocation.reveal);
  await enterPhase(house, id, 'COMMITTED');
  const deployed = {
    ideaId: 'idea-1',
    tokenAddress: `0x${'0a'.repeat(20)}`,
    txHash: '0x00',
    graduatedAt: '2030-01-02T00:00:00.000Z',
  } as const;
  await house.forum.record(id, { type: 'idea.deployed', payload: deployed });
  const other = await openChamber(house, [bob]);
  const chamber = (n: number) =>
    ['', '/ideas', '/allocations', '/merkle-preview', '/consistency?from=1&to=2'].map(
      (tail) => `/chambers/${n}${tail}`,
    );
  const paths = [
    '/chambers',
    '/chambers?phase=COMMITTED',
    '/ideas',
    '/ideas/two',
    '/ideas/ONE',
    ...chamber(id),
    ...chamber(other),
  ];
  const answers = async (where: House) => {
    const all = await Promise.all(paths.map((target) => where.must('GET', target)));
    return [...all, await where.must('GET', '/me', { by: ann }), await where.lines(id)];
  };
  return { house, answers };
}

describe('after a restart', () => {
  it('every answer is as it was', async () => {
    const path = temporaryDatabase();
    const { house, answers } = await lived(path);
    const before = await answers(house);
    await house.close();
    const again = new House({ path, clock: house.clock });
    expect(await answers(again)).toEqual(before);
  });

  it('all is gone with a store in memory, and its log has another id', async () => {
    const { house } = await lived(':memory:');
    const other = new House();
    expect(await other.must('GET', '/chambers')).toEqual([]);
    expect(other.log.logId).not.toBe(house.log.logId);
  });
});

describe('the derived tables', () => {
  it('come out the same when they are made again from the lines', async () => {
    const path = temporaryDatabase();
    const { house } = await lived(path);
    await house.close();
    const dump = () => {
      const db = intrude(path);
      return DERIVED_TABLES.map((table) => db.prepare(`SELECT * FROM ${table}`).all());
    };
    const before = dump();
    expect(before.map((rows) => rows.length)).toEqual([2, 2]);
    const tamper = intrude(path);
    tamper.exec('DELETE FROM ideas; UPDATE chambers SET member_count = 99');
    tamper.close();
    expect(rebuildDatabase(path)).toEqual({ chambers: 2, ideas: 2 });
    expect(dump()).toEqual(before);
  });
});
