// An account with a long history costs no more than a short one: a change replaces the state, so that only the log grows.
import { describe, expect, it, vi } from 'vitest';
import { ACCOUNT_SNAPSHOT_EVERY_EVENTS } from '../../projections/snapshot.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import type { Signer } from '../kit/signer.ts';
import { TestService } from '../kit/test-service.ts';

const CHANGES = 40;
/** Nearly the largest personality that a request may set. */
const WORDS = Array.from({ length: 50 }, (_, index) => `${index} `.padEnd(250, 'x'));

async function change(service: TestService, by: Signer, changes: number): Promise<void> {
  for (let at = 0; at < changes; at++) {
    const style = `change ${at}`.padEnd(20);
    await service.must('PUT', '/personality', {
      by,
      body: { patch: { loves: WORDS, hates: WORDS, expertise: WORDS, style } },
    });
  }
}

/** Counts the lines read from each stream from now on. */
function countLines(service: TestService): ReadonlyMap<StreamId, number> {
  const counted = new Map<StreamId, number>();
  const readPage = service.log.readPage.bind(service.log);
  vi.spyOn(service.log, 'readPage').mockImplementation(async (...range) => {
    const page = await readPage(...range);
    counted.set(range[0], (counted.get(range[0]) ?? 0) + page.count);
    return page;
  });
  return counted;
}

describe('an account with a long history', () => {
  it('an account with a long history uses only the memory of its state', async () => {
    const service = new TestService();
    const by = await service.agent();
    await change(service, by, 1);
    const once = service.forum.cachedBytes;
    await change(service, by, CHANGES);
    expect(service.forum.cachedBytes).toBe(once);
  });

  it('an account with a long history is folded from its snapshot', async () => {
    const service = new TestService({ settings: { STATE_CACHE_BYTES_MAX: '1' } });
    const by = await service.agent();
    await change(service, by, CHANGES);
    const lines = countLines(service);
    const account = await service.forum.account(by.did);
    expect(account?.state).toMatchObject({ personality: { style: 'change 39'.padEnd(20) }, lastEventId: CHANGES + 1 });
    // The snapshot's own event is also read.
    expect(lines.get(by.did)).toBe(((CHANGES + 1) % ACCOUNT_SNAPSHOT_EVERY_EVENTS) + 1);
  });
});

it('a state too large for the cache is folded once per move, before the batch', async () => {
  const service = new TestService({ settings: { STATE_CACHE_BYTES_MAX: '1' } });
  const by = await service.agent();
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'DEBATE');
  await change(service, by, CHANGES);
  const lines = countLines(service);
  const caller = { did: by.did, request: null, signature: null, times: null };
  const moves = ['one', 'two', 'three'].map((comment) =>
    service.forum.submit({ operation: 'debate', chamberId: id, body: { json: { comment } }, caller }),
  );
  // Concurrent moves have no defined order.
  expect(new Set((await Promise.all(moves)).map(({ eventId }) => eventId))).toEqual(new Set([3, 4, 5]));
  expect(lines.get(by.did)).toBe(((CHANGES + 1) % ACCOUNT_SNAPSHOT_EVERY_EVENTS) + 1);
  expect(lines.get(id)).toBe(2);
});
