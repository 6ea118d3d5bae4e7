// Commands for the owner of the contracts. They never print keys or RPC URLs.
import { VARIABLES } from '../config.ts';
import { readChainId } from '../relayer/chain-client.ts';
import type { FeeSettings } from '../relayer/fees.ts';
import { probeChain } from '../relayer/identity.ts';
import { deployContracts, type Owner, OwnerError, readRoles, setRelayer } from '../relayer/owner.ts';
import { openRpc, type Rpc, RpcError } from '../relayer/rpc.ts';
import { openAccount } from '../relayer/transactions.ts';
import { configuredContracts } from '../service/chain-settings.ts';
import { messageOf } from '../vocabulary/errors.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { Input } from './command.ts';
import { CommandError, print, printMembers, printNotice } from './output.ts';
import { readKeyFile } from './private-key.ts';

export const deploy = withRpc(async (rpc, input) => {
  const [kind, relayer] = [kindOf(input), relayerOf(input)];
  const owner = await ownerOf(rpc, input);
  const chainId = await requireChainId(rpc);
  if (kind === 'quorum')
    printNotice(input.isJson, 'These contracts stand in for those of the live protocol, for rehearsals.');
  const { registryAddress, factoryAddress } = await deployContracts(owner, { kind, relayer });
  const variables = {
    CHAIN_ID: String(chainId),
    CONTRACTS: kind,
    CHAMBER_REGISTRY_ADDRESS: registryAddress,
    IDEA_FACTORY_ADDRESS: factoryAddress,
  };
  print(
    input.isJson,
    variables,
    Object.entries(variables).map((entry) => entry.join('=')),
  );
  const rest =
    kind === 'quorum' ? 'RPC_URL, RELAYER_PRIVATE_KEY and CONTRACTS_FILE' : 'RPC_URL and RELAYER_PRIVATE_KEY';
  printNotice(input.isJson, `Set these, with ${rest}; the relayer is ${relayer}, the owner ${owner.account.address}.`);
});

export const check = withRpc(async (rpc, input) => {
  const addresses = addressesOf(input);
  const [kind, relayer] = [kindOf(input), relayerOf(input)];
  const rpcUrl = optionOf(input, 'rpc', 'RPC_URL');
  const { CONTRACTS_FILE } = process.env;
  if (kind === 'quorum' && !CONTRACTS_FILE)
    throw new CommandError('usage', 'set CONTRACTS_FILE for the quorum contracts');
  const contracts = configuredContracts({ CONTRACTS: kind, CONTRACTS_FILE });
  const chainId = await requireChainId(rpc);
  const report = await probeChain({ rpcUrl, chainId, contracts, ...addresses, ...feeSettings() }, relayer);
  const sentences = (found: typeof report.warnings) => found.map(({ variable, problem }) => `${variable}: ${problem}`);
  if (report.mismatches.length > 0) throw new CommandError('failure', sentences(report.mismatches).join('; '));
  for (const warning of sentences(report.warnings)) printNotice(input.isJson, warning);
  const { owner = null } = (await readRoles(rpc, addresses.registryAddress)) ?? {};
  printMembers(input.isJson, {
    chainId,
    contracts: kind,
    ...addresses,
    relayer,
    balance: `${report.balance} wei`,
    owner,
  });
});

export const changeRelayer = withRpc(async (rpc, input) => {
  const [text = ''] = input.args;
  const relayer = parse('the address of the relayer', text, VARIABLES.CHAMBER_REGISTRY_ADDRESS.parse) as Hex;
  const addresses = addressesOf(input);
  const owner = await ownerOf(rpc, input);
  await requireChainId(rpc);
  const changed = await setRelayer(owner, addresses, relayer);
  printMembers(input.isJson, {
    relayer,
    changed: changed.length > 0 ? changed : 'nothing: it was already the relayer',
  });
});

/** Translates chain errors into one sentence without the URL. */
function withRpc(run: (rpc: Rpc, input: Input) => Promise<void>) {
  return async (input: Input): Promise<void> => {
    const rpc = openRpc(optionOf(input, 'rpc', 'RPC_URL'));
    try {
      await run(rpc, input);
    } catch (error) {
      if (error instanceof OwnerError) throw new CommandError('failure', error.message);
      if (!(error instanceof RpcError)) throw error;
      if (error.kind === 'rejected') throw new CommandError('failure', error.message);
      throw new CommandError('unreachable', `${error.message}: is --rpc or RPC_URL right?`);
    } finally {
      rpc.close();
    }
  };
}

type ChainVariable = 'RPC_URL' | 'CHAMBER_REGISTRY_ADDRESS' | 'IDEA_FACTORY_ADDRESS';

/** Reads an option, or the variable that it defaults to, and validates the value by the variable's rule. */
function optionOf({ options }: Input, option: string, variable: ChainVariable): string {
  const text = options[option];
  if (text !== undefined) return parse(`--${option}`, text, VARIABLES[variable].parse);
  const set = process.env[variable];
  if (!set) throw new CommandError('usage', `set --${option} or ${variable}`);
  return parse(variable, set, VARIABLES[variable].parse);
}

/** Errors never quote the value, which may be a misplaced key. A rule returns undefined only for an absent value. */
function parse<Value>(name: string, text: string, rule: (text: string) => Value): NonNullable<Value> {
  try {
    return rule(text) as NonNullable<Value>;
  } catch (error) {
    throw new CommandError('usage', `${name} ${messageOf(error)}`);
  }
}

function addressesOf(input: Input): { readonly registryAddress: Hex; readonly factoryAddress: Hex } {
  return {
    registryAddress: optionOf(input, 'registry', 'CHAMBER_REGISTRY_ADDRESS') as Hex,
    factoryAddress: optionOf(input, 'factory', 'IDEA_FACTORY_ADDRESS') as Hex,
  };
}

function kindOf({ options: { contracts } }: Input): 'reference' | 'quorum' {
  const { CONTRACTS } = process.env;
  const [name, text] = contracts === undefined ? ['CONTRACTS', CONTRACTS] : ['--contracts', contracts];
  return parse(name, text || 'reference', VARIABLES.CONTRACTS.parse) as 'reference' | 'quorum';
}

function relayerOf({ options: { relayer } }: Input): Hex {
  if (relayer !== undefined) return parse('--relayer', relayer, VARIABLES.CHAMBER_REGISTRY_ADDRESS.parse) as Hex;
  const { RELAYER_PRIVATE_KEY } = process.env;
  if (!RELAYER_PRIVATE_KEY) throw new CommandError('usage', 'set --relayer or RELAYER_PRIVATE_KEY');
  return openAccount(parse('RELAYER_PRIVATE_KEY', RELAYER_PRIVATE_KEY, VARIABLES.RELAYER_PRIVATE_KEY.parse)).address;
}

async function ownerOf(rpc: Rpc, { options, isJson }: Input): Promise<Owner> {
  const [name, key] = await readKey(options['key-file']);
  const account = openAccount(parse(name, key, VARIABLES.RELAYER_PRIVATE_KEY.parse));
  const onSent = (what: string, txHash: string) => printNotice(isJson, `${what}: transaction ${txHash} sent`);
  return { rpc, account, feeSettings: feeSettings(), onSent };
}

function feeSettings(): FeeSettings {
  const read = (variable: 'FEE_MAX_GWEI' | 'FEE_TIP_GWEI') => {
    const text = process.env[variable];
    return text ? parse(variable, text, VARIABLES[variable].parse) : undefined;
  };
  return { feeMaxWei: read('FEE_MAX_GWEI'), tipWei: read('FEE_TIP_GWEI') };
}

async function readKey(path: string | undefined): Promise<readonly [name: string, key: string]> {
  const { OWNER_PRIVATE_KEY } = process.env;
  if (path === undefined) {
    if (!OWNER_PRIVATE_KEY) throw new CommandError('usage', 'set --key-file or OWNER_PRIVATE_KEY');
    return ['OWNER_PRIVATE_KEY', OWNER_PRIVATE_KEY];
  }
  return [`--key-file: the key in ${path}`, await readKeyFile('--key-file', path)];
}

async function requireChainId(rpc: Rpc): Promise<number> {
  const { CHAIN_ID } = process.env;
  const chainId = await readChainId(rpc);
  const expected = CHAIN_ID ? parse('CHAIN_ID', CHAIN_ID, VARIABLES.CHAIN_ID.parse) : chainId;
  if (chainId === expected) return chainId;
  throw new CommandError('failure', `CHAIN_ID: the RPC serves chain ${chainId}, expected ${expected}`);
}
