// Tests the owner's rights in the reference contracts.
import { type Address, encodeEventTopics, encodeFunctionData, pad, parseAbi, zeroAddress } from 'viem';
import { beforeEach, describe, expect, test } from 'vitest';
import { orRevert, readCall, readGas, readLogs } from '../../src/relayer/chain-client.ts';
import { creationCode, RELAYED_ABI, revertError } from '../../src/relayer/contracts.ts';
import { type ContractAddresses, readRoles, setRelayer } from '../../src/relayer/owner.ts';
import { fund, NEXT, openOwner } from './owner-account.ts';
import { openRelayerChain, type RelayerChain } from './relayer-chain.ts';

const ABI = parseAbi(['function transferOwnership(address next)', 'function acceptOwnership()']);

let opened: RelayerChain;
let contracts: ContractAddresses;
beforeEach(async () => {
  opened = await openRelayerChain('reference');
  contracts = opened.config;
});

function setRelayerCall(next: Address) {
  return encodeFunctionData({ abi: RELAYED_ABI, functionName: 'setRelayer', args: [next] });
}

async function errorOf(call: Promise<unknown>): Promise<string | undefined> {
  const outcome = await orRevert(call);
  return 'revertData' in outcome ? revertError(outcome.revertData) : undefined;
}

describe.each(['registryAddress', 'factoryAddress'] as const)('at %s', (name) => {
  test('the event of a change names the previous and the next relayer', async () => {
    const { rpc } = opened;
    const before = await readRoles(rpc, contracts[name]);
    await setRelayer(await openOwner(rpc), contracts, NEXT);
    const args = { previous: before?.relayer, next: NEXT };
    const topics = encodeEventTopics({ abi: RELAYED_ABI, eventName: 'RelayerChanged', args });
    const blocks = { fromBlock: 0, toBlock: Number(await rpc.request('eth_blockNumber', [])) };
    expect(await readLogs(rpc, { address: contracts[name], topics, ...blocks })).toHaveLength(1);
    expect(await readRoles(rpc, contracts[name])).toEqual({ owner: before?.owner, relayer: NEXT });
  });

  test('only the owner may change the relayer, and never to the zero address', async () => {
    const { rpc } = opened;
    const [to, owner] = [contracts[name], (await openOwner(rpc)).account.address];
    expect(await errorOf(readCall(rpc, { from: NEXT, to, data: setRelayerCall(NEXT) }))).toBe(
      'OwnableUnauthorizedAccount',
    );
    expect(await errorOf(readCall(rpc, { from: owner, to, data: setRelayerCall(zeroAddress) }))).toBe('InvalidRelayer');
  });

  test('a new owner must accept the ownership', async () => {
    const { rpc } = opened;
    const { account } = await openOwner(rpc);
    const to = contracts[name];
    await fund(rpc, NEXT);
    const transfer = encodeFunctionData({ abi: ABI, functionName: 'transferOwnership', args: [NEXT] });
    const accept = encodeFunctionData({ abi: ABI, functionName: 'acceptOwnership' });
    for (const from of [account.address, NEXT]) await rpc.request('anvil_impersonateAccount', [from]);
    await rpc.request('eth_sendTransaction', [{ from: account.address, to, data: transfer }]);
    await rpc.request('evm_mine', []);
    expect((await readRoles(rpc, to))?.owner).toBe(account.address);
    await rpc.request('eth_sendTransaction', [{ from: NEXT, to, data: accept }]);
    await rpc.request('evm_mine', []);
    expect((await readRoles(rpc, to))?.owner).toBe(NEXT);
  });
});

test('neither contract can be deployed for the zero address', async () => {
  const { rpc } = opened;
  const codes = [
    creationCode('ChamberRegistry', zeroAddress),
    creationCode('IdeaFactory', contracts.registryAddress, zeroAddress),
  ];
  for (const data of codes) {
    expect(await errorOf(readGas(rpc, { from: NEXT, to: undefined, data }))).toBe('InvalidRelayer');
  }
});

test('a delegated account (EIP-7702) may be the relayer, but a contract may not', async () => {
  const { rpc } = opened;
  const owner = await openOwner(rpc);
  await expect(setRelayer(owner, contracts, contracts.factoryAddress)).rejects.toThrow('is a contract');
  await rpc.request('anvil_setCode', [NEXT, `0xef0100${pad('0x12', { size: 20 }).slice(2)}`]);
  expect(await setRelayer(owner, contracts, NEXT)).toEqual(['registry', 'factory']);
});
