// Anvil dumps blocks before accounts, so a dump can be torn by a new block.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { spawnAnvil } from '../../src/dev-chain/anvil.ts';
import { DevChain } from '../../src/dev-chain/dev-chain.ts';
import { openRpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { openFaultProxy } from '../relayer/fault-proxy.ts';
import { recordingLogger } from '../relayer/relayer-chain.ts';

const RECIPIENT = `0x${'5b'.repeat(20)}`;
const DUMP_BYTES_MAX = 10_000_000;

interface State {
  readonly accounts: Readonly<Record<string, { readonly nonce: number | string }>>;
  readonly transactions: readonly object[];
}

it('a state is not saved if a block was mined during Anvil’s dump', async () => {
  const stateFile = join(temporaryFolder(), 'chain.json');
  const anvil = await spawnAnvil([]);
  const proxy = await openFaultProxy(anvil.rpcUrl);
  const chain = new DevChain({ stateFile, logger: recordingLogger([]) }, { ...anvil, rpcUrl: proxy.url });
  const rpc = openRpc(anvil.rpcUrl, { responseBytesMax: DUMP_BYTES_MAX });
  atEnd(async () => {
    rpc.close();
    await chain.stop();
    proxy.close();
  });
  const { address: from } = openAccount(chain.config.privateKey);
  const dump = async (): Promise<State> => {
    const packed = Buffer.from(String(await rpc.request('anvil_dumpState', [])).slice(2), 'hex');
    return JSON.parse(gunzipSync(packed).toString());
  };
  let dumps = 0;
  proxy.fault = async (method) => {
    if (method !== 'anvil_dumpState' || ++dumps > 1) return undefined;
    const before = await dump();
    await rpc.request('eth_sendTransaction', [{ from, to: RECIPIENT, value: '0x1' }]);
    await until(async () => nonceOf(await dump()) === 1);
    const { accounts } = await dump();
    return { kind: 'result', result: `0x${gzipSync(JSON.stringify({ ...before, accounts })).toString('hex')}` };
  };
  const nonceOf = ({ accounts }: State) => Number(accounts[from.toLowerCase()]?.nonce);
  const minedIn = ({ transactions }: State) =>
    transactions.filter((each) => JSON.stringify(each).includes(RECIPIENT.slice(2))).length;
  await until(() => existsSync(stateFile));
  const saved: State = JSON.parse(readFileSync(stateFile, 'utf8'));
  expect([nonceOf(saved), minedIn(saved)]).toEqual([1, 1]);
  expect(dumps).toBe(2);
});
