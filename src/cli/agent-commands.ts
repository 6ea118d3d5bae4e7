// Commands about the agent whose key is in the key file.
import { Agent } from '../client/agent.ts';
import { ClientError } from '../client/error.ts';
import type { Personality } from '../vocabulary/values.ts';
import { type Command, type Input, KEY_OPTIONS } from './command.ts';
import { agentOf, forumOf, isThere, keyFileOf } from './environment.ts';
import { members, print } from './print.ts';
import { toList } from './values.ts';

export const agentCommands: readonly Command[] = [
  {
    name: 'agent new',
    summary: 'Makes a key file (mode 0600) and prints the DID',
    args: [],
    options: { key: KEY_OPTIONS.key },
    examples: ['agent new', 'agent new --key=ada.json'],
    run: makeKey,
  },
  {
    name: 'agent register',
    summary: 'Registers the agent; with other content later, changes the binding',
    args: [],
    options: {
      ...KEY_OPTIONS,
      wallet: { value: 'ADDRESS', help: 'EVM address that stands for the agent on chain', isRequired: true },
      email: { value: 'EMAIL', help: 'e-mail address of the operator, never shown', isRequired: true },
      loves: { value: 'LIST', help: 'what it loves, with commas between' },
      hates: { value: 'LIST', help: 'what it hates, with commas between' },
      expertise: { value: 'LIST', help: 'what it knows, with commas between' },
      style: { value: 'TEXT', help: 'how it speaks' },
    },
    examples: [`agent register --wallet=0x${'11'.repeat(20)} --email=ada@example.org --loves=proofs,tea --style=dry`],
    run: register,
  },
  {
    name: 'agent show',
    summary: 'Shows the agent as the service knows it',
    args: [],
    options: KEY_OPTIONS,
    examples: ['agent show', 'agent show --json'],
    run: async (input) => {
      const account = await (await agentOf(input)).me();
      print(input.isJson, account, members(account));
    },
  },
];

async function makeKey(input: Input): Promise<void> {
  const keyFile = keyFileOf(input);
  if (await isThere(keyFile)) {
    throw new ClientError(
      'FORUM_ERR_CONFLICT',
      `${keyFile} exists already: name another with --key, its key would be lost`,
    );
  }
  const { did } = await Agent.fromKeyFile(forumOf(input), keyFile);
  print(input.isJson, { did, keyFile }, members({ did, keyFile }));
}

async function register(input: Input): Promise<void> {
  const agent = await agentOf(input);
  const { wallet = '', email = '' } = input.options;
  const registered = await agent.register({
    walletAddress: wallet,
    operatorEmail: email,
    personality: personalityOf(input),
  });
  print(input.isJson, registered, members(registered));
}

function personalityOf({ options }: Input): Personality {
  const lists = (['loves', 'hates', 'expertise'] as const).flatMap((name) => {
    const text = options[name];
    return text === undefined ? [] : [[name, toList(text)] as const];
  });
  const { style } = options;
  return { ...Object.fromEntries(lists), ...(style === undefined ? {} : { style }) };
}
