import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { TokenReader } from '../../src/relayer/token-reader.ts';
import { serve } from '../kit/serve.ts';
import { atEnd } from '../kit/temporary.ts';

const ANSWER_MILLIS = 1_000;
const QUESTIONS = 100;
const ADDRESS = `0x${'5b'.repeat(20)}`;
const BLOCK = { number: '0x1', hash: `0x${'1'.repeat(64)}`, timestamp: '0x1' };
const RESULTS: Readonly<Record<string, unknown>> = {
  eth_chainId: '0x1',
  eth_getBlockByNumber: BLOCK,
  eth_getCode: '0x60',
};

it('an RPC that hung gets no requests for queries that have timed out', async () => {
  let isHanging = true;
  let requests = 0;
  const rpcUrl = await serve(async (request, response) => {
    requests++;
    const chunks = await request.toArray();
    const { id, method } = JSON.parse(Buffer.concat(chunks).toString());
    if (!isHanging) response.end(JSON.stringify({ jsonrpc: '2.0', id, result: RESULTS[method] }));
  });
  const reader = new TokenReader({ rpcUrl, chainId: 1, answerMillisMax: ANSWER_MILLIS });
  atEnd(() => reader.close());
  const question = { kind: 'contract', address: ADDRESS } as const;
  const results = await Promise.allSettled(Array.from({ length: QUESTIONS }, () => reader.answer(question)));
  expect(results.every(({ status }) => status === 'rejected')).toBe(true);
  await sleep(ANSWER_MILLIS / 2);
  isHanging = false;
  const requestsBefore = requests;
  await sleep(2 * ANSWER_MILLIS);
  expect(requests).toBe(requestsBefore);
  expect(await reader.answer(question)).toMatchObject({ chainId: 1, blockNumber: 1 });
});
