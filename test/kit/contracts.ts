// Deploys the contracts of fixtures/contracts on Anvil, from Anvil's first account.
import { createRequire } from 'node:module';
import { type Abi, type Address, encodeDeployData, encodeFunctionData, type Hex } from 'viem';
import { readReceipt } from '../../src/relayer/chain-client.ts';
import type { Rpc } from '../../src/relayer/rpc.ts';
import { until } from './until.ts';

const require = createRequire(import.meta.url);

export interface Contract {
  readonly address: Address;
  send(functionName: string, ...args: readonly unknown[]): Promise<void>;
}

/** Deploys a contract; `name` is that of its artifact, e.g. admission/Erc20. */
export async function deployContract(rpc: Rpc, name: string, ...args: readonly unknown[]): Promise<Contract> {
  const { abi, bytecode } = require(`../../fixtures/contracts/${name}.json`) as { abi: Abi; bytecode: Hex };
  const { contractAddress } = await send(rpc, { data: encodeDeployData({ abi, bytecode, args }) });
  const address = contractAddress as Address;
  return {
    address,
    send: async (functionName, ...values) => {
      await send(rpc, { to: address, data: encodeFunctionData({ abi, functionName, args: values }) });
    },
  };
}

async function send(rpc: Rpc, transaction: { readonly to?: Address; readonly data: Hex }) {
  const [from] = (await rpc.request('eth_accounts', [])) as [Address];
  const hash = (await rpc.request('eth_sendTransaction', [{ from, ...transaction }])) as Hex;
  await until(async () => (await readReceipt(rpc, hash)) !== null);
  return (await rpc.request('eth_getTransactionReceipt', [hash])) as { readonly contractAddress: Address | null };
}
