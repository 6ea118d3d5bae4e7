import { beforeEach, expect, test } from 'vitest';
import { NonceQueue } from '../../src/relayer/nonce-queue.ts';
import { openAccount, signTransaction, type UnsignedTransaction } from '../../src/relayer/transactions.ts';
import type { RelayTransaction } from '../../src/vocabulary/service-payloads.ts';

const account = openAccount(`0x${'ab'.repeat(32)}`);
const GAS = 21_000n;
const FEE = 3n;

function unsigned(nonce: number): UnsignedTransaction {
  return { chainId: 1, nonce, to: account.address, gas: GAS, maxFeePerGas: FEE, maxPriorityFeePerGas: 1n };
}

let queue: NonceQueue;
let logged: RelayTransaction[];
beforeEach(() => {
  queue = new NonceQueue();
  logged = [];
});

async function sign(): Promise<void> {
  await queue.log(
    () => unsigned(queue.lowestFree),
    async (chosen) => {
      const transaction = await signTransaction(account, chosen);
      logged.push(transaction);
      return transaction.txHash;
    },
  );
}

const fail = () =>
  queue.log(
    () => unsigned(queue.lowestFree),
    async () => Promise.reject(new Error('the disk is full')),
  );

test('concurrent callers get consecutive nonces, each once', async () => {
  await queue.update(5, [], []);
  await Promise.all(Array.from({ length: 8 }, sign));
  expect(logged.map(({ nonce }) => nonce)).toEqual([5, 6, 7, 8, 9, 10, 11, 12]);
});

test('a nonce taken while the log is being read is not free afterwards', async () => {
  const { ended } = queue;
  await sign();
  await queue.update(0, [], ended);
  expect(queue.lowestFree).toBe(1);
  await queue.update(0, logged, queue.ended);
  expect(queue.lowestFree).toBe(1);
});

test('after a failure nothing is logged until the log has been read again, so there is no gap', async () => {
  await expect(fail()).rejects.toThrow('the disk is full');
  await sign();
  expect(logged).toEqual([]);
  await queue.update(0, [], queue.ended);
  await sign();
  expect(logged.map(({ nonce }) => nonce)).toEqual([0]);
});

test('a transaction whose append failed keeps its nonce if the log has it', async () => {
  await expect(fail()).rejects.toThrow('the disk is full');
  const { ended } = queue;
  await queue.update(0, [await signTransaction(account, unsigned(0))], ended);
  expect(queue.lowestFree).toBe(1);
});

test('pending transactions reserve their maximum cost', async () => {
  await queue.update(0, [], []);
  for (let count = 0; count < 3; count++) await sign();
  expect([queue.unmined, queue.reserved]).toEqual([3, 3n * GAS * FEE]);
  await queue.update(2, logged, queue.ended);
  expect([queue.unmined, queue.reserved]).toEqual([1, GAS * FEE]);
});

test('the queue is full at the nodes’ limit of pending transactions', async () => {
  for (let count = 0; count < 64; count++) {
    expect(queue.isFull).toBe(false);
    await sign();
  }
  expect(queue.isFull).toBe(true);
  await queue.update(1, logged, queue.ended);
  expect(queue.isFull).toBe(false);
});
