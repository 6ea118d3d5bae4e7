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

test('nonces are chosen in order, each once, however many ask at the same time', async () => {
  await queue.update(5, [], []);
  await Promise.all(Array.from({ length: 8 }, sign));
  expect(logged.map(({ nonce }) => nonce)).toEqual([5, 6, 7, 8, 9, 10, 11, 12]);
});

test('a nonce that was taken while the log was read is not free after it', async () => {
  const { ended } = queue;
  await sign();
  await queue.update(0, [], ended);
  expect(queue.lowestFree).toBe(1);
  await queue.update(0, logged, queue.ended);
  expect(queue.lowestFree).toBe(1);
});

test('after a failure none is logged before the log was read again, so none lies above a gap', async () => {
  await expect(fail()).rejects.toThrow('the disk is full');
  await sign();
  expect(logged).toEqual([]);
  await queue.update(0, [], queue.ended);
  await sign();
  expect(logged.map(({ nonce }) => nonce)).toEqual([0]);
});

test('a failed transaction that is in the log after all keeps its nonce', async () => {
  await expect(fail()).rejects.toThrow('the disk is full');
  const { ended } = queue;
  await queue.update(0, [await signTransaction(account, unsigned(0))], ended);
  expect(queue.lowestFree).toBe(1);
});

test('the transactions that no block has reserve what they may cost', async () => {
  await queue.update(0, [], []);
  for (let count = 0; count < 3; count++) await sign();
  expect([queue.unmined, queue.reserved]).toEqual([3, 3n * GAS * FEE]);
  await queue.update(2, logged, queue.ended);
  expect([queue.unmined, queue.reserved]).toEqual([1, GAS * FEE]);
});

test('it is full with as many as nodes keep of one account', async () => {
  for (let count = 0; count < 64; count++) {
    expect(queue.isFull).toBe(false);
    await sign();
  }
  expect(queue.isFull).toBe(true);
  await queue.update(1, logged, queue.ended);
  expect(queue.isFull).toBe(false);
});
