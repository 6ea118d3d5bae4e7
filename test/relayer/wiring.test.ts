// Tests that wrong contract settings are reported before the first commitment, each with the variable to change.
import type { Address } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DevChain, startDevChain } from '../../src/dev-chain/dev-chain.ts';
import type { RelayerConfig } from '../../src/relayer/context.ts';
import { REFERENCE } from '../../src/relayer/contracts.ts';
import { setRelayer } from '../../src/relayer/owner.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { openAccount } from '../../src/relayer/transactions.ts';
import { findWiringFaults } from '../../src/relayer/wiring.ts';
import { deployContract } from '../kit/contracts.ts';
import { deployFor, NEXT, NEXT_KEY, openOwner } from './owner-account.ts';
import { quorumContracts } from './quorum-file.ts';
import { recordingLogger } from './relayer-chain.ts';

let chain: DevChain;
let rpc: Rpc;
let sound: Pick<RelayerConfig, 'contracts' | 'registryAddress' | 'factoryAddress'>;
let relayer: Address;
beforeAll(async () => {
  chain = await startDevChain({ logger: recordingLogger([]) });
  rpc = openRpc(chain.config.rpcUrl);
  sound = chain.config;
  relayer = openAccount(chain.config.privateKey).address;
});
afterAll(async () => {
  rpc.close();
  await chain.stop();
});

async function faults(changes: Partial<typeof sound & { readonly relayer: Address }> = {}) {
  return findWiringFaults(rpc, { ...sound, relayer, ...changes });
}

test('the development chain’s contracts pass the check: ChamberNotCommitted is not a fault', async () => {
  expect(await faults()).toEqual([]);
});

test('swapped addresses are reported', async () => {
  const { registryAddress, factoryAddress } = sound;
  const [fault, ...others] = await faults({ registryAddress: factoryAddress, factoryAddress: registryAddress });
  expect(fault).toEqual({
    variable: 'CHAMBER_REGISTRY_ADDRESS',
    problem: `${factoryAddress} is the factory and IDEA_FACTORY_ADDRESS the registry: swap the two`,
  });
  expect(others).toEqual([]);
});

test('swapped addresses are reported even if the account is wrong too', async () => {
  const { registryAddress, factoryAddress } = sound;
  const swapped = { registryAddress: factoryAddress, factoryAddress: registryAddress };
  expect(await faults({ ...swapped, relayer: NEXT })).toMatchObject([{ problem: expect.stringContaining('swap') }]);
});

test('a factory with swapped constructor arguments is reported', async () => {
  const { address: factoryAddress } = await deployContract(rpc, 'IdeaFactory', relayer, sound.registryAddress);
  expect(await faults({ factoryAddress })).toMatchObject([
    { variable: 'IDEA_FACTORY_ADDRESS', problem: expect.stringContaining('constructor arguments swapped') },
  ]);
});

test('a factory of another registry is reported', async () => {
  const { factoryAddress, registryAddress } = await deployFor(rpc, chain.config.privateKey);
  expect(await faults({ factoryAddress })).toMatchObject([
    { variable: 'IDEA_FACTORY_ADDRESS', problem: expect.stringContaining(`uses the registry ${registryAddress}`) },
  ]);
});

test('contracts that reject the caller are reported until the owner appoints the account', async () => {
  const addresses = await deployFor(rpc, chain.config.privateKey);
  const wiring = { ...addresses, relayer: NEXT };
  expect(await faults(wiring)).toMatchObject([
    { variable: 'RELAYER_PRIVATE_KEY', problem: expect.stringContaining('commitChamber rejects the account') },
    { variable: 'RELAYER_PRIVATE_KEY', problem: expect.stringContaining('deployIdea rejects the account') },
  ]);
  expect(await setRelayer(await openOwner(rpc), addresses, NEXT)).toEqual(['registry', 'factory']);
  expect(await faults(wiring)).toEqual([]);
  expect(await setRelayer(await openOwner(rpc), addresses, NEXT)).toEqual([]);
});

test('unrelated contracts are detected by their empty reverts', async () => {
  const { address: registryAddress } = await deployContract(rpc, 'quorum/QuorumFactory', relayer);
  const found = await faults({ registryAddress });
  expect(found.map(({ variable }) => variable)).toEqual(['CHAMBER_REGISTRY_ADDRESS', 'IDEA_FACTORY_ADDRESS']);
});

test.each([
  ['reference', 'quorum'],
  ['quorum', 'reference'],
] as const)('%s contracts are not accepted as %s contracts', async (deployed, configured) => {
  const addresses = await deployFor(rpc, chain.config.privateKey, deployed);
  const contracts = configured === 'quorum' ? quorumContracts() : REFERENCE;
  const problem = expect.stringMatching(`; is CONTRACTS=${configured} right\\?$`);
  expect(await faults({ ...addresses, contracts })).toMatchObject([
    { variable: 'CHAMBER_REGISTRY_ADDRESS', problem },
    { variable: 'IDEA_FACTORY_ADDRESS', problem },
  ]);
});

test('a quorum dealer that is not the relayer is reported', async () => {
  const addresses = await deployFor(rpc, NEXT_KEY, 'quorum');
  expect(await faults({ ...addresses, contracts: quorumContracts(), relayer: NEXT })).toEqual([]);
  expect(await faults({ ...addresses, contracts: quorumContracts() })).toMatchObject([
    { variable: 'RELAYER_PRIVATE_KEY', problem: expect.stringContaining('(NotDealer()') },
    { variable: 'RELAYER_PRIVATE_KEY', problem: expect.stringContaining('(NotDeployer()') },
  ]);
});
