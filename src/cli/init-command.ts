// `chambers init`: asks for an agent's service, key and wallet unless options set them, registers the agent, and prints the configuration
// for an MCP host.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import * as v from 'valibot';
import { Agent } from '../client/agent.ts';
import { ClientError } from '../client/error.ts';
import type { WalletSigner } from '../client/wallet.ts';
import { createFile } from '../files/durable-file.ts';
import { agentLabel, operatorEmail } from '../moves/register.ts';
import { walletAddress } from '../vocabulary/schemas.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { type CommandSpec, type Input, KEY_OPTION, URL_OPTION } from './command.ts';
import { forumOf, keyFileOf } from './environment.ts';
import { MCP_OPTIONS, mcpConfig } from './mcp-config.ts';
import { CommandError, printNotice } from './output.ts';
import { walletOf } from './private-key.ts';
import { Questions } from './questions.ts';
import { isRegularFile, requireWritable, writeWhole } from './write-whole.ts';

export const initCommand: CommandSpec = {
  name: 'init',
  summary: 'Creates and registers an agent for a model, and prints the configuration for an MCP host',
  options: {
    ...URL_OPTION,
    ...KEY_OPTION,
    '--wallet <wallet>':
      "the agent's EVM address, or a file with its private key (default: a new wallet in <key file>.wallet)",
    '--email <email>': "the operator's e-mail address, never published; required unless the key is registered",
    '--label <name>': 'a name for people',
    '--yes': 'do not prompt: use the defaults for missing options',
    '--out <file>': 'write the configuration to this new file instead of printing it',
    '--force': 'replace the file of --out',
    ...MCP_OPTIONS,
  },
  examples: ['init', 'init --out=.mcp.json', 'init --yes --email=ada@example.org --max-open=1'],
  run: init,
};

async function init(input: Input): Promise<void> {
  const { options, isJson } = input;
  if (options['out'] !== undefined) await requireWritable(options['out'], options['force'] !== undefined);
  const questions = new Questions(options['yes'] !== undefined);
  const note = (line: string) => printNotice(isJson, visibleLine(line));
  try {
    const url = await questions.ask({
      text: 'URL of the service',
      option: '--url',
      given: options['url'],
      fallback: forumOf(input).service.baseUrl,
      check: async (answer) => {
        const forum = forumOf(withOptions(input, { url: answer }));
        const { name, version } = await forum.info();
        note(`${name} ${version} at ${forum.service.baseUrl}`);
        return forum.service.baseUrl;
      },
    });
    const key = await questions.ask({
      text: 'Key file of the agent, created if it does not exist',
      option: '--key',
      given: options['key'],
      fallback: resolve(keyFileOf(input)),
      check: async (answer) => {
        const path = toPath(answer);
        await Agent.fromKeyFile(forumOf(withOptions(input, { url })), path);
        return path;
      },
    });
    const answered = withOptions(input, { url, key });
    note(await ensureRegistered(await Agent.fromKeyFile(forumOf(answered), key), answered, questions));
    const config = `${JSON.stringify(mcpConfig(answered), null, 2)}\n`;
    const { out } = options;
    if (out === undefined) process.stdout.write(config);
    else await writeWhole(out, [config], options['force'] !== undefined);
    const where = out === undefined ? 'Add this to' : `${out} is`;
    note(`${where} the configuration of an MCP host. Then tell the model: take part in a chamber.`);
  } finally {
    questions.close();
  }
}

function withOptions(input: Input, options: Input['options']): Input {
  return { ...input, options: { ...input.options, ...options } };
}

/** Registers the agent unless it is registered; returns a sentence about the registration. */
async function ensureRegistered(agent: Agent, { options }: Input, questions: Questions): Promise<string> {
  const account = await agent.me().catch((error: unknown) => {
    if (error instanceof ClientError && error.step === 'registration') return undefined;
    throw error;
  });
  const { wallet: given, key = '' } = options;
  const defaultPath = `${key}.wallet`;
  if (account !== undefined) {
    const { walletAddress } = account;
    if (
      given === undefined ||
      addressOf(await toWallet(given, defaultPath)).toLowerCase() === walletAddress.toLowerCase()
    ) {
      return `${agent.did} is registered with the wallet ${walletAddress}`;
    }
    const change = 'change it with chambers agent register';
    throw new CommandError('conflict', `${agent.did} is registered with the wallet ${walletAddress}: ${change}`);
  }
  const wallet = await questions.ask({
    text: 'Wallet: an address, or a file with its private key; by default a new one',
    option: '--wallet',
    given,
    fallback: defaultPath,
    check: (answer) => toWallet(answer, defaultPath),
  });
  const email = await questions.ask({
    text: 'E-mail address of the operator, never published',
    option: '--email',
    given: options['email'],
    check: async (answer) => v.parse(operatorEmail, answer),
  });
  const label = await questions.ask({
    text: 'Name of the agent, shown in transcripts; empty for none',
    option: '--label',
    given: options['label'],
    fallback: '',
    check: async (answer) => (answer === '' ? undefined : v.parse(agentLabel, answer)),
  });
  const binding = typeof wallet === 'string' ? { walletAddress: wallet } : { wallet };
  await agent.register({ ...binding, operatorEmail: email, label });
  const proven = typeof wallet === 'string' ? '' : ', which is proven to be the agent’s';
  return `${agent.did} is registered with the wallet ${addressOf(wallet)}${proven}`;
}

function addressOf(wallet: string | WalletSigner): string {
  return typeof wallet === 'string' ? wallet : wallet.address;
}

/** Creates a missing file only at the default path: any other missing path is probably a typo. */
async function toWallet(answer: string, defaultPath: string): Promise<string | WalletSigner> {
  if (/^0x[0-9a-f]{0,63}$/i.test(answer)) return v.parse(walletAddress, answer);
  // If the answer is a key instead of a path, walletOf throws.
  if (/^(0x)?[0-9a-f]{64}$/i.test(answer)) return await walletOf(answer, '--wallet');
  const path = toPath(answer);
  if (path === defaultPath && !(await isRegularFile(path))) await createWallet(path);
  return await walletOf(path, '--wallet');
}

async function createWallet(path: string): Promise<void> {
  const { generatePrivateKey } = await import('viem/accounts');
  await createFile(path, `${generatePrivateKey()}\n`, { mode: 0o600 });
}

/** Expands `~`, because no shell has expanded the answer. */
function toPath(answer: string): string {
  return resolve(answer.startsWith('~/') ? join(homedir(), answer.slice(2)) : answer);
}
