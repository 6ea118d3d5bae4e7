// Tests a change of the relayer's key: the owner appoints the new account, the service restarts with its key, and pending work of the old
// account completes exactly once.
import { beforeEach, expect, test } from 'vitest';
import { readReceipt, sendRaw } from '../../src/relayer/chain-client.ts';
import { setRelayer } from '../../src/relayer/owner.ts';
import { until } from '../kit/until.ts';
import { addChamber } from './chambers.ts';
import { fund, NEXT, NEXT_KEY, openOwner } from './owner-account.ts';
import { expectSettledOnce, isSettled, openRelayerChain, type RelayerChain } from './relayer-chain.ts';

let opened: RelayerChain;
beforeEach(async () => {
  opened = await openRelayerChain('reference');
  await fund(opened.rpc, NEXT);
});

const IDEAS = [
  { ticker: 'ONE', backers: 1 },
  { ticker: 'TWO', backers: 1 },
] as const;

async function rotate(): Promise<void> {
  await setRelayer(await openOwner(opened.rpc), opened.config, NEXT);
}

/** Changes the key while a commitment of the old account is pending, which the node then forgets. */
async function rotateWhileCommitting() {
  const { forum, rpc } = opened;
  const relayer = opened.relayer();
  await opened.automine(false);
  addChamber(forum, 1, IDEAS);
  await until(() => forum.facts('relay.commit_submitted').length === 1);
  await relayer.stop();
  await rpc.request('anvil_dropAllTransactions', []);
  await opened.automine(true);
  await rotate();
  return forum.facts('relay.commit_submitted')[0];
}

test('the new key completes a commitment that the old key left pending', async () => {
  await rotateWhileCommitting();
  opened.relayer({ privateKey: NEXT_KEY });
  await expectSettledOnce(opened);
  expect(opened.forum.facts('relay.commit_submitted')).toHaveLength(2);
});

test('a service that still has the old key raises an alert and sends nothing', async () => {
  const { forum } = opened;
  const relayer = opened.relayer();
  addChamber(forum, 1, IDEAS);
  await until(() => isSettled(forum));
  await rotate();
  addChamber(forum, 2, IDEAS);
  await until(() => !relayer.status().ok);
  expect(relayer.status().reason).toMatch(/^chamber 2: NotRelayer\(0x/);
  await relayer.stop();

  opened.relayer({ privateKey: NEXT_KEY });
  await expectSettledOnce(opened);
});

test('a commitment of the old key that is mined after the change reverts, and the new one counts', async () => {
  const { rpc } = opened;
  const pending = await rotateWhileCommitting();
  await sendRaw(rpc, pending?.rawTransaction ?? '0x');
  await until(async () => (await readReceipt(rpc, pending?.txHash ?? '0x'))?.status === 0);
  opened.relayer({ privateKey: NEXT_KEY });
  await expectSettledOnce(opened);
});

test('the old key’s last transaction counts, even if the node would accept a second one', async () => {
  const { forum, proxy } = opened;
  addChamber(forum, 1, [{ ticker: 'ONE', backers: 1 }]);
  forum.beforeRecord = ({ type }) => {
    if (type === 'idea.deployed') throw new Error('the disk is full');
  };
  const relayer = opened.relayer();
  await until(() => opened.lines.some((line) => line.includes('round failed')));
  await relayer.stop();
  forum.beforeRecord = () => {};
  await rotate();

  proxy.fault = (method) => (method === 'eth_estimateGas' ? { kind: 'result', result: '0x2dc6c0' } : undefined);
  opened.relayer({ privateKey: NEXT_KEY, rpcUrl: proxy.url });
  await expectSettledOnce(opened);
  expect(forum.facts('relay.deploy_submitted')).toHaveLength(1);
});
