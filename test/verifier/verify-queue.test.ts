// The order in which waiting signatures are served.
import { describe, expect, it } from 'vitest';
import type { VerifyCaller } from '../../src/crypto/verify.ts';
import { type QueueLimits, type VerifyJob, VerifyQueue } from '../../src/verifier/verify-queue.ts';

const UNREGISTERED: VerifyCaller = { network: '192.0.2.9' };

describe('the queue of signatures', () => {
  it('the queue serves networks in turn, and the keys of a network in turn', () => {
    const { push, takeAll } = queueOf();
    for (const name of ['a1', 'a2', 'a3']) push(name, { network: 'A', did: 'alice' });
    push('b1', { network: 'A', did: 'bob' });
    push('c1', { network: 'B', did: 'alice' });
    expect(takeAll()).toEqual(['a1', 'c1', 'b1', 'a2', 'a3']);
  });

  it('the queue gives unregistered keys one job in eight while registered keys wait', () => {
    const { push, takeAll } = queueOf();
    for (let index = 0; index < 20; index++) push('unregistered', UNREGISTERED);
    for (let index = 0; index < 21; index++) push('registered', { network: '192.0.2.9', did: `agent ${index}` });
    const order = takeAll();
    const turns = order.flatMap((name, index) => (name === 'unregistered' ? [index] : []));
    expect(turns.slice(0, 3)).toEqual([7, 15, 23]);
    expect(order).toHaveLength(41);
    expect(order.lastIndexOf('registered')).toBe(22);
  });

  it('the queue limits jobs per key, per network, and for all unregistered keys together', () => {
    const { queue, push, takeAll } = queueOf({ perKeyMax: 2, perNetworkMax: 3 });
    const pushed = (did: string, network = 'A') => push(did, { network, did });
    expect(['a', 'a', 'a', 'b', 'b', 'c'].map((did) => pushed(did))).toEqual([true, true, false, true, false, false]);
    expect(pushed('a', 'B')).toBe(true);
    const unregistered = Array.from({ length: 65 }, () => push('u', UNREGISTERED));
    expect(unregistered.lastIndexOf(true)).toBe(63);
    expect(queue.size).toBe(68);
    takeAll();
    expect([queue.size, pushed('a')]).toEqual([0, true]);
  });
});

function queueOf(limits?: Partial<QueueLimits>) {
  const queue = new VerifyQueue(limits);
  const names = new Map<VerifyJob, string>();
  const push = (name: string, caller: VerifyCaller) => {
    const empty = new Uint8Array();
    const job = { publicKey: empty, message: empty, signature: empty, resolve: () => {}, reject: () => {} };
    names.set(job, name);
    return queue.push(job, caller);
  };
  const takeAll = () => {
    const taken: (string | undefined)[] = [];
    for (let job = queue.take(); job !== undefined; job = queue.take()) taken.push(names.get(job));
    return taken;
  };
  return { queue, push, takeAll };
}
