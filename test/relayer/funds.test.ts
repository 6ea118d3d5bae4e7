// Tests the metrics of the relayer's funds.
import { expect, test } from 'vitest';
import { Funds } from '../../src/relayer/funds.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { eventually } from '../kit/until.ts';
import { openRelayerChain } from './relayer-chain.ts';

const GWEI = 1_000_000_000n;
const ETHER = 10n ** 18n;
const offer = { fees: { maxFeePerGas: 2n * GWEI, maxPriorityFeePerGas: GWEI }, limit: 9n * GWEI };

test('funds are estimated once a minute, as a number of transactions like the most expensive signed one', async () => {
  let now = 0;
  const funds = new Funds(() => now);
  expect(funds.figures).toEqual({ balanceEther: Number.NaN, transactionsLeft: Number.NaN });
  let balance = ETHER;
  const readings = { balance: async () => balance, fees: async () => offer };
  await funds.update(readings);
  expect(funds.figures).toEqual({ balanceEther: 1, transactionsLeft: 333 });
  funds.recordCall({ gas: 1_000_000n, value: ETHER / 1000n });
  funds.recordCall({ gas: 50_000n, value: 0n });
  balance = ETHER / 2n;
  await funds.update(readings);
  expect(funds.figures.transactionsLeft).toBe(333);
  now = 60_000;
  await funds.update(readings);
  expect(funds.figures).toEqual({ balanceEther: 0.5, transactionsLeft: 166 });
  now = 120_000;
  await funds.update({ ...readings, fees: async () => ({ excess: 'too much' }) });
  expect(funds.figures).toEqual({ balanceEther: 0.5, transactionsLeft: 166 });
  funds.reset();
  expect(funds.figures.transactionsLeft).toBeNaN();
});

test('an idle relayer reads its funds', async () => {
  const { rpc, config, relayer: start } = await openRelayerChain();
  await rpc.request('anvil_setBalance', [openAccount(config.privateKey).address, `0x${(ETHER / 100n).toString(16)}`]);
  const relayer = start();
  await eventually(() => expect(relayer.spending().balanceEther).toBe(0.01));
  expect(relayer.spending().transactionsLeft).toBeLessThan(50);
});
