import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type Anvil, spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const START_MILLIS_MAX = 3_000;
/** Anvil prints a line per request; a pipe without a reader is full after about 5,000 lines. */
const REQUESTS = 20_000;
const REQUESTS_PER_BATCH = 500;

let anvil: Anvil | undefined;
afterEach(() => anvil?.kill());

test('Anvil still responds after its start timeout and thousands of requests', async () => {
  anvil = await spawnAnvil([], { startMillisMax: START_MILLIS_MAX });
  await sleep(START_MILLIS_MAX);
  const ids = Array.from({ length: REQUESTS_PER_BATCH }, (_, id) => id);
  const body = JSON.stringify(ids.map((id) => ({ jsonrpc: '2.0', id, method: 'eth_chainId', params: [] })));
  const headers = { 'content-type': 'application/json' };
  let responses = 0;
  while (responses < REQUESTS) {
    const signal = AbortSignal.timeout(30_000);
    const batch = await (await fetch(anvil.rpcUrl, { method: 'POST', headers, body, signal })).json();
    responses += (batch as unknown[]).length;
  }
  expect(responses).toBe(REQUESTS);
});

test('a start that takes too long or is aborted fails', async () => {
  // Anvil blocks on a named pipe without a writer.
  const genesis = join(temporaryFolder(), 'genesis');
  execFileSync('mkfifo', [genesis]);
  const slow = ['--init', genesis];
  await expect(spawnAnvil(slow, { startMillisMax: 100 })).rejects.toThrow('Anvil did not listen in time');
  const stopping = new AbortController();
  const starting = spawnAnvil(slow, { signal: stopping.signal });
  stopping.abort();
  await expect(starting).rejects.toThrow('the start of Anvil was aborted');
});

test('an Anvil that exits during its start is reported with its own error', async () => {
  await expect(spawnAnvil(['--no-such-option'])).rejects.toThrow(/Anvil exited while starting: .*--no-such-option/);
});
