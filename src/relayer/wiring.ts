// Checks that the contracts are the expected ones and accept the relayer. Simulates both calls from the relayer's account, for a chamber
// that does not exist, and sends nothing. A revert after the contract's check of the caller, such as ChamberNotCommitted, proves that the
// caller is accepted.
import { type Address, getAddress, isAddressEqual, size, slice } from 'viem';
import { type Call, orRevert, readBalance, readCall } from './chain-client.ts';
import type { RelayerConfig } from './context.ts';
import {
  CALLER_REJECTED,
  type DeployedIdea,
  NO_CHAMBER,
  revertError,
  revertReason,
  SIMULATED_COMMIT,
} from './contracts.ts';
import type { Rpc } from './rpc.ts';

export interface Mismatch {
  /** The setting that fixes the problem. */
  readonly variable: string;
  readonly problem: string;
}

export interface Wiring extends Pick<RelayerConfig, 'contracts' | 'registryAddress' | 'factoryAddress'> {
  readonly relayer: Address;
}

interface Fault extends Mismatch {
  /** Whether the contract has a different interface. */
  readonly isOtherContract: boolean;
}

export async function findWiringFaults(rpc: Rpc, wiring: Wiring): Promise<readonly Mismatch[]> {
  const { registryAddress, factoryAddress } = wiring;
  const faults = await findFaults(rpc, wiring);
  if (!faults.some(({ isOtherContract }) => isOtherContract)) return faults;
  const swapped = { ...wiring, registryAddress: factoryAddress, factoryAddress: registryAddress };
  const areSwapped = (await findFaults(rpc, swapped)).every(({ isOtherContract }) => !isOtherContract);
  if (!areSwapped) {
    const hint = `; is CONTRACTS=${wiring.contracts.name} right?`;
    return faults.map((fault) => (fault.isOtherContract ? { ...fault, problem: fault.problem + hint } : fault));
  }
  const problem = `${registryAddress} is the factory and IDEA_FACTORY_ADDRESS the registry: swap the two`;
  return [{ variable: 'CHAMBER_REGISTRY_ADDRESS', problem }];
}

async function findFaults(rpc: Rpc, wiring: Wiring): Promise<readonly Fault[]> {
  return [...(await registryFaults(rpc, wiring)), ...(await factoryFaults(rpc, wiring))];
}

async function registryFaults(
  rpc: Rpc,
  { contracts, registryAddress: to, relayer }: Wiring,
): Promise<readonly Fault[]> {
  const variable = 'CHAMBER_REGISTRY_ADDRESS';
  const registry = `the registry at ${to}`;
  const view = await orRevert(readCall(rpc, { to, data: contracts.rootCall(NO_CHAMBER) }));
  if (!('result' in view) || size(contracts.readRoot(view.result)) !== 32) {
    const problem = `${registry} does not return roots as the ${contracts.name} contracts do`;
    return [{ variable, problem, isOtherContract: true }];
  }
  const call = { from: relayer, to, data: SIMULATED_COMMIT };
  return simulate(rpc, call, { variable, callee: `${registry}: commitChamber` });
}

async function factoryFaults(rpc: Rpc, wiring: Wiring): Promise<readonly Fault[]> {
  const { contracts, factoryAddress: to, relayer } = wiring;
  const variable = 'IDEA_FACTORY_ADDRESS';
  const factory = `the factory at ${to}`;
  const other = await otherRegistry(rpc, wiring);
  if (other !== undefined) {
    const isArgumentSwapped = isAddressEqual(other, relayer);
    const problem = isArgumentSwapped
      ? `${factory} was deployed with its constructor arguments swapped: deploy IdeaFactory(registry, relayer)`
      : `${factory} uses the registry ${other}, not CHAMBER_REGISTRY_ADDRESS`;
    return [{ variable, problem, isOtherContract: false }];
  }
  const value = contracts.deployValue;
  // Without funds the node rejects the simulation; probeChain warns about this.
  if (value > 0n && (await readBalance(rpc, relayer)) < value) return [];
  const call = { from: relayer, to, value, data: contracts.deployCall(NO_CHAMBER, anyIdea(relayer)) };
  return simulate(rpc, call, { variable, callee: `${factory}: deployIdea`, resultBytes: 32 });
}

/** Returns the factory's registry if it differs from the configured one. */
async function otherRegistry(rpc: Rpc, { contracts, registryAddress, factoryAddress: to }: Wiring) {
  if (contracts.registryCall === undefined) return undefined;
  const view = await orRevert(readCall(rpc, { to, data: contracts.registryCall }));
  if (!('result' in view) || size(view.result) !== 32) return undefined;
  const named = getAddress(slice(view.result, 12));
  return isAddressEqual(named, registryAddress) ? undefined : named;
}

function anyIdea(creatorWallet: Address): DeployedIdea {
  return { ideaId: 'idea-1', name: 'Simulation', ticker: 'SIMULATION', description: '', creatorWallet };
}

async function simulate(
  rpc: Rpc,
  call: Call,
  {
    variable,
    callee,
    resultBytes = 0,
  }: { readonly variable: string; readonly callee: string; readonly resultBytes?: number },
): Promise<readonly Fault[]> {
  const outcome = await orRevert(readCall(rpc, call));
  if ('result' in outcome) {
    const isExpected = size(outcome.result) >= resultBytes;
    return isExpected ? [] : [{ variable, problem: `${callee} returns nothing`, isOtherContract: true }];
  }
  const error = revertError(outcome.revertData);
  // Only the reference contracts have an owner who can change the relayer.
  const hint = error === 'NotRelayer' ? `, or run chambers contracts set-relayer ${call.from}` : '';
  const reason = revertReason(outcome.revertData);
  if (error === undefined) return [{ variable, problem: `${callee}: ${reason}`, isOtherContract: true }];
  if (error === 'InvalidBpsSum') {
    return [{ variable: 'CONTRACTS_FILE', problem: `${callee}: ${reason}: change bps`, isOtherContract: false }];
  }
  if (!CALLER_REJECTED.has(error)) return [];
  const problem = `${callee} rejects the account ${call.from} (${reason}): set the key of the account that it accepts${hint}`;
  return [{ variable: 'RELAYER_PRIVATE_KEY', problem, isOtherContract: false }];
}
