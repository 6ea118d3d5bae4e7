import type { CommandSpec } from './command.ts';

const RPC = { '--rpc <url>': 'JSON-RPC address of the chain (default: RPC_URL)' } as const;
const KEY = {
  '--key-file <file>': "file with the owner's private key (default: OWNER_PRIVATE_KEY holds the key)",
} as const;
const KIND = { '--contracts <name>': 'reference or quorum (default: CONTRACTS or reference)' } as const;
const RELAYER = {
  '--relayer <address>': "the relayer's account (default: the account of RELAYER_PRIVATE_KEY)",
} as const;
const ADDRESSES = {
  '--registry <address>': 'the registry (default: CHAMBER_REGISTRY_ADDRESS)',
  '--factory <address>': 'the factory (default: IDEA_FACTORY_ADDRESS)',
} as const;

export const contractsCommands: readonly CommandSpec[] = [
  {
    name: 'contracts deploy',
    summary:
      'Deploys a registry and a factory, and prints the variables to set; the account of the key becomes their owner',
    options: { ...RPC, ...KEY, ...RELAYER, ...KIND },
    examples: [
      'contracts deploy --rpc http://127.0.0.1:8545 --key-file owner.key --relayer 0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    ],
    run: async (input) => (await import('./contracts.ts')).deploy(input),
  },
  {
    name: 'contracts check',
    summary: "Simulates both of the relayer's calls and reports wrong addresses, contracts or accounts",
    options: { ...RPC, ...ADDRESSES, ...RELAYER, ...KIND },
    examples: ['contracts check'],
    run: async (input) => (await import('./contracts.ts')).check(input),
  },
  {
    name: 'contracts set-relayer',
    summary: 'Changes the relayer of the reference contracts, with immediate effect',
    args: { '<address>': "the new relayer's account" },
    options: { ...RPC, ...KEY, ...ADDRESSES },
    examples: ['contracts set-relayer 0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC --key-file owner.key'],
    run: async (input) => (await import('./contracts.ts')).changeRelayer(input),
  },
];
