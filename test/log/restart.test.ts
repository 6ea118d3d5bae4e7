// All state is a fold of the log: after a restart every response is the same, and the derived tables match the lines.
import { describe, expect, it } from 'vitest';
import { DERIVED_TABLES } from '../../src/log/sql/tables.ts';
import { migrateDatabase } from '../../src/log/sqlite/database-file.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { rebuildLog } from '../durability/log-book.ts';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { type Prepared, TestService } from '../kit/test-service.ts';
import { asSchema7, asSchema9, foreignConnection } from './entries.ts';

/** Plays two chambers: one that ends with a token, and one in its lobby. */
async function playChambers(path: string) {
  const service = new TestService({ path });
  const firsts: (readonly [Prepared, string])[] = [];
  const send = async (by: Signer, method: string, target: string, body?: unknown) => {
    const request = service.prepare(method, target, { by, body });
    const answer = await service.send(request);
    expect(answer.status).toBe(200);
    firsts.push([request, JSON.stringify(answer.body)]);
  };
  const ann = await service.agent({ personality: { style: 'dry', loves: ['proofs'] } });
  const bob = await service.agent();
  await send(ann, 'PUT', '/personality', { patch: { hates: ['waste'], expertise: ['logs'] } });
  const id = await openChamber(service, [ann, bob]);
  const move = (by: Signer, operation: string, body?: unknown) =>
    send(by, 'POST', `/chambers/${id}/${operation}`, body);
  await enterPhase(service, id, 'PROPOSAL');
  await move(ann, 'propose', { name: 'One', ticker: 'ONE' });
  await move(ann, 'pass');
  await move(bob, 'propose', { name: 'Two', ticker: 'TWO' });
  await enterPhase(service, id, 'DEBATE');
  await move(ann, 'debate', { ideaId: 'idea-2', comment: 'yes', refinement: { b: [1], a: { d: 1, c: 2 } } });
  await enterPhase(service, id, 'ALLOCATE_COMMIT');
  const allocation = allocationOf(id, bob, { 'idea-1': 7_000, 'idea-2': 0 });
  await move(bob, 'allocate/commit', allocation.commit);
  await enterPhase(service, id, 'ALLOCATE_REVEAL');
  await move(bob, 'allocate/reveal', allocation.reveal);
  await enterPhase(service, id, 'COMMITTED');
  const deployed = {
    ideaId: 'idea-1',
    tokenAddress: `0x${'0a'.repeat(20)}`,
    txHash: '0x00',
    graduatedAt: '2030-01-02T00:00:00.000Z',
  } as const;
  await service.forum.submit({
    operation: 'record',
    chamberId: id,
    fact: { type: 'idea.deployed', payload: deployed },
  });
  const other = await openChamber(service, [bob]);
  await send(bob, 'PUT', '/personality', { patch: { style: 'terse' } });
  const chamber = (n: number) =>
    ['', '/ideas', '/allocations', '/outcome', '/merkle-preview', '/consistency?from=1&to=2', '/events/1/proof'].map(
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
  /** The responses as text, because the order of members matters. */
  const answers = async (where: TestService) => {
    const texts: Record<string, string> = {};
    for (const target of paths) texts[target] = JSON.stringify((await where.request('GET', target)).body);
    for (const by of [ann, bob]) texts[`/me of ${by.did}`] = JSON.stringify(await where.must('GET', '/me', { by }));
    return { ...texts, lines: (await where.lines(id)).join('\n') };
  };
  /** The first response to each signed request, and the response to its retry. */
  const retries = (where: TestService) =>
    Promise.all(
      firsts.map(async ([request, first]) => ({ first, retry: JSON.stringify((await where.send(request)).body) })),
    );
  return { service, answers, retries };
}

describe('a restart', () => {
  it('every response is the same after a restart, byte for byte', async () => {
    const path = temporaryDatabase();
    const { service, answers } = await playChambers(path);
    const before = await answers(service);
    await service.close();
    const again = new TestService({ path, clock: service.clock });
    expect(await answers(again)).toEqual(before);
  });

  it('a retry after a restart gets the response to the first request', async () => {
    const path = temporaryDatabase();
    const { service, retries } = await playChambers(path);
    const before = await retries(service);
    await service.close();
    const after = await retries(new TestService({ path, clock: service.clock }));
    for (const { first, retry } of [...before, ...after]) expect(retry).toBe(first);
  });

  it('a store in memory loses everything at a restart, and gets a new log id', async () => {
    const { service } = await playChambers(':memory:');
    const other = new TestService();
    expect(await other.must('GET', '/chambers')).toEqual([]);
    expect(other.log.logId).not.toBe(service.log.logId);
  });
});

describe('the derived tables', () => {
  it('the derived tables are the same when they are rebuilt from the lines', async () => {
    const path = temporaryDatabase();
    const { service } = await playChambers(path);
    await service.close();
    const dump = () => {
      const db = foreignConnection(path);
      return DERIVED_TABLES.map((table) => db.prepare(`SELECT * FROM ${table}`).all());
    };
    const before = dump();
    expect(before.map((rows) => rows.length)).toEqual([2, 2, 3, 1]);
    const tamper = foreignConnection(path);
    tamper.exec(
      "DELETE FROM ideas; DELETE FROM turns; UPDATE members SET is_open = 2; UPDATE chambers SET listing = '{}'",
    );
    tamper.close();
    expect(await rebuildLog(path)).toEqual({ chambers: 2, ideas: 2 });
    expect(dump()).toEqual(before);
    for (const asEarlier of [asSchema7, asSchema9]) {
      asEarlier(path);
      await migrateDatabase(path);
      expect(dump()).toEqual(before);
    }
    const { callbacks, close } = openSqliteStore(path);
    expect(await callbacks.get('did:key:a')).toBeUndefined();
    await close();
  });
});
