// Tests many chambers that end in the same second, on a chain with a block each second: each waits only for its own confirmations, even if
// requests for one of them fail. src/relayer/README.md has the figures for MANY_CHAMBERS=200; with FAULT_EVERY=10, every tenth request for
// the first chamber fails.
import { expect, test } from 'vitest';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import type { Fault } from './fault-proxy.ts';
import { expectRecordedOnce, isSettled, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

const { MANY_CHAMBERS = '100', FAULT_EVERY = '3' } = process.env;
/** More than the transactions that may be pending. */
const CHAMBERS = Number(MANY_CHAMBERS);
const CONFIRMATIONS = 8;
const WAIT_MILLIS = 240_000;

interface Times {
  /** Milliseconds from the end of the chambers to the last outcome of this kind. */
  readonly roots: readonly number[];
  readonly tokens: readonly number[];
}

let undisturbed: Promise<Times> | undefined;
/** Both tests need these times. */
const playUndisturbed = (): Promise<Times> => (undisturbed ??= play(() => undefined));

test(`${CHAMBERS} chambers that end together take little longer than their confirmations`, {
  timeout: 300_000,
}, async () => {
  const { roots, tokens } = await playUndisturbed();
  console.log(`roots within ${seconds(roots)} s, tokens within ${seconds(tokens)} s`);
});

test(`a job with a failure in every ${FAULT_EVERY} requests does not delay others`, { timeout: 600_000 }, async () => {
  const calm = await playUndisturbed();
  let count = 0;
  const faults: readonly Fault[] = [
    { kind: 'hang' },
    { kind: 'status', status: 500, body: '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no luck today"}}' },
    { kind: 'reset' },
  ];
  const disturbed = await play((isForFirst) =>
    isForFirst && count++ % Number(FAULT_EVERY) === 0 ? faults[count % faults.length] : undefined,
  );
  console.log(
    `others: ${seconds(calm.tokens.slice(1))} s without and ${seconds(disturbed.tokens.slice(1))} s with faults, of ${count} requests`,
  );
  const ratios = calm.tokens.slice(1).map((millis, n) => (disturbed.tokens[n + 1] ?? 0) / millis);
  const within = ratios.filter((ratio) => ratio <= 1.1).length;
  console.log(`${within} of ${ratios.length} others within a tenth, the largest ${Math.max(...ratios).toFixed(2)}`);
  expect(count).toBeGreaterThan(9);
});

/** `faultOf` chooses the fault of a request; it gets whether the request is for the first chamber. */
async function play(faultOf: (isForFirst: boolean) => Fault | undefined): Promise<Times> {
  const opened = await openRelayerChain();
  const { rpc, proxy, forum } = opened;
  await rpc.request('evm_setAutomine', [false]);
  await rpc.request('evm_setIntervalMining', [1]);
  const ended = Date.now();
  for (let chamberId = 1; chamberId <= CHAMBERS; chamberId++)
    addChamber(forum, chamberId, [{ ticker: 'T', backers: 1 }]);
  const isForFirst = requestsOf(opened, 1);
  proxy.fault = (method, params) => faultOf(isForFirst(method, params));
  const roots = new Map<number, number>();
  const tokens = new Map<number, number>();
  const record = forum.record.bind(forum);
  forum.record = async (chamberId, fact) => {
    await record(chamberId, fact);
    if (fact.type === 'chamber.committed') roots.set(chamberId, Date.now() - ended);
    if (fact.type === 'idea.deployed') tokens.set(chamberId, Date.now() - ended);
  };
  const relayer = opened.relayer({ rpcUrl: proxy.url, confirmations: CONFIRMATIONS });
  await until(() => isSettled(forum), WAIT_MILLIS);
  await relayer.stop();
  await expectRecordedOnce(opened);
  expect(forum.facts('idea.deploy_failed')).toEqual([]);
  const signed = [...forum.facts('relay.commit_submitted'), ...forum.facts('relay.deploy_submitted')];
  expect(new Set(signed.map(({ nonce }) => nonce)).size).toBe(2 * CHAMBERS);
  const ids = [...forum.events.keys()];
  return { roots: ids.map((id) => roots.get(id) ?? 0), tokens: ids.map((id) => tokens.get(id) ?? 0) };
}

/** Returns whether a request contains calldata of the chamber's jobs, or the hash or bytes of their transactions. */
function requestsOf(
  { forum }: RelayerChain,
  chamberId: number,
): (method: string, params: readonly unknown[]) => boolean {
  const word = chamberId.toString(16).padStart(64, '0');
  const isCall = (data: string) => data.slice(10, 74) === word || data.slice(10 + 64, 10 + 128) === word;
  return (_method, [first]) => {
    const { commitSubmitted, deployments } = forum.state(chamberId).settlement;
    const own = [...commitSubmitted, ...[...deployments.values()].flatMap(({ submitted }) => submitted)];
    if (typeof first === 'string')
      return own.some(({ txHash, rawTransaction }) => [txHash, rawTransaction].includes(first as `0x${string}`));
    const { data } = (first ?? {}) as { readonly data?: string };
    return data !== undefined && isCall(data);
  };
}

function seconds(millis: readonly number[]): string {
  return (Math.max(...millis) / 1000).toFixed(1);
}
