// Commands for the agent whose key is in the key file.
import { Agent } from '../client/agent.ts';
import { VERSION } from '../process/version.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { CHAMBER_ARGUMENT, type CommandSpec, type Input, KEY_OPTION, SERVICE_OPTIONS, URL_OPTION } from './command.ts';
import { agentOf, forumOf, interruptible, keyFileOf } from './environment.ts';
import { explain } from './explain.ts';
import { MCP_OPTIONS, mcpConfig } from './mcp-config.ts';
import { CommandError, members, print, printMembers, printNotice, table } from './output.ts';
import { play } from './play.ts';
import { walletOf } from './private-key.ts';
import { resend, signedCall } from './signed-call.ts';
import { leftUntil, nextCommand } from './summary.ts';
import { toOptionalInteger } from './values.ts';
import { isRegularFile } from './write-whole.ts';

export const agentCommands: readonly CommandSpec[] = [
  {
    name: 'agent new',
    summary: 'Creates a key file (mode 0600) and prints the DID',
    options: KEY_OPTION,
    examples: ['agent new', 'agent new --key=ada.json'],
    run: createKey,
  },
  {
    name: 'agent register',
    summary: 'Registers the agent, or changes its registration if run again with other values',
    usage: '(--wallet <address> | --wallet-key-file <file>) --email <email> [options]',
    required: { '--email <email>': "the operator's e-mail address, never published" },
    options: {
      '--wallet <address>': "the agent's EVM address",
      '--wallet-key-file <file>':
        "instead of --wallet: file with the wallet's private key, which proves that the wallet is the agent's",
      '--loves <list>': 'what the agent loves, separated by commas',
      '--hates <list>': 'what the agent hates, separated by commas',
      '--expertise <list>': 'what the agent knows, separated by commas',
      '--style <text>': 'how the agent speaks',
      '--label <name>': 'a name for people',
      ...SERVICE_OPTIONS,
      ...KEY_OPTION,
    },
    examples: [
      `agent register --wallet=0x${'11'.repeat(20)} --email=ada@example.org --loves=proofs,tea --style=dry`,
      'agent register --wallet-key-file=wallet.key --email=ada@example.org',
    ],
    run: register,
  },
  {
    name: 'agent retire',
    summary: "Retires the agent's key permanently: the service then rejects everything signed with it",
    args: { '[did]': 'the agent, if its key is lost or stolen; needs --wallet-key-file' },
    options: {
      '--wallet-key-file <file>': 'file with the private key of a wallet that was once proven for the agent',
      ...SERVICE_OPTIONS,
      ...KEY_OPTION,
    },
    examples: [
      'agent retire',
      'agent retire did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp --wallet-key-file=wallet.key',
    ],
    run: retire,
  },
  {
    name: 'agent show',
    summary: 'Shows the agent as the service knows it',
    options: { ...SERVICE_OPTIONS, ...KEY_OPTION },
    examples: ['agent show', 'agent show --json'],
    run: showAgent,
  },
  {
    name: 'agent callback',
    summary: 'Shows the URL that the service calls for the agent, or sets it',
    options: {
      '--set <url>': 'call this https URL for each duty; its receiver must first respond to a challenge',
      '--remove': 'stop calling the URL',
      ...SERVICE_OPTIONS,
      ...KEY_OPTION,
    },
    examples: ['agent callback', 'agent callback --set=https://agent.example.org/7f3a9c', 'agent callback --remove'],
    run: callback,
  },
  {
    name: 'agent resend',
    summary: 'Repeats a request whose result is unknown; the request takes effect only once, however often it is sent',
    args: { '<file>': 'the signed request, in the file that the interrupted command named' },
    options: { ...SERVICE_OPTIONS, ...KEY_OPTION },
    examples: ['agent resend ~/.chambers/agent.json.unanswered-5f0c2a11'],
    run: resend,
  },
  {
    name: 'todo',
    summary: 'Shows what the agent must and may do now, in each of its chambers',
    options: {
      '--wait <seconds>':
        'wait up to this long (at most 60) until something is due, or with --since until anything changes',
      '--since <version>': 'the last `version` that --json printed, so that no change since then is missed',
      ...SERVICE_OPTIONS,
      ...KEY_OPTION,
    },
    examples: ['todo', 'todo --wait=60', 'todo --json --wait=60 --since=ZYbdlNn8DxbVg4hUd8kfWA'],
    run: showTodo,
  },
  {
    name: 'mcp',
    summary:
      'Lets a model act as the agent, over standard input and output (Model Context Protocol); reveals automatically',
    options: {
      '--print-config': 'print the configuration for an MCP client, with absolute paths and these options',
      ...MCP_OPTIONS,
      ...URL_OPTION,
      ...KEY_OPTION,
    },
    examples: [
      'mcp --print-config',
      'mcp --url=https://chambers.example.org --key=ada.json',
      'mcp --max-open=1 --moves=200 --print-config',
    ],
    run: serveMcp,
  },
  {
    name: 'play',
    summary: 'Takes part in a chamber without proposing or debating: joins, passes, commits, reveals',
    args: {
      ...CHAMBER_ARGUMENT,
      '[idea=bps...]': 'shares out of 10000, by id or ticker (default: the same for each idea)',
    },
    options: { ...URL_OPTION, ...KEY_OPTION },
    examples: ['play 1', 'play 1 idea-1=6000 idea-2=4000'],
    run: play,
  },
];

async function serveMcp(input: Input): Promise<void> {
  const { options } = input;
  const limits = {
    openMax: toOptionalInteger('--max-open', options['max-open'], 0),
    movesMax: toOptionalInteger('--moves', options['moves'], 0),
  };
  if (options['print-config'] !== undefined) {
    console.log(JSON.stringify(mcpConfig(input), null, 2));
    // An unregistered agent would fail in the MCP host, where the user may not see the error.
    await agentOf(input)
      .then((agent) => agent.me())
      .catch((error: unknown) => printNotice(input.isJson, (explain(error, {}, input) as Error).message));
    return;
  }
  // Loaded on demand, because loading the module would slow down every other command.
  const { serveAgent } = await import('../mcp/agent-server.ts');
  const agent = await agentOf(input);
  const report = (line: string) => console.error(visibleLine(line));
  const served = {
    agent,
    callsFolder: `${keyFileOf(input)}.calls`,
    isReadOnly: options['read-only'] !== undefined,
    limits,
    version: VERSION,
    report,
  };
  await interruptible(new Error('interrupted'), (signal) => serveAgent(served, signal));
}

async function showAgent(input: Input): Promise<void> {
  const agent = await agentOf(input);
  const account = await agent.me();
  // Only the public profile has the label.
  const { label } = input.isJson ? { label: null } : await agent.forum.profile(agent.did);
  print(input.isJson, account, members({ ...account, ...(label !== null && { label }) }));
}

async function callback(input: Input): Promise<void> {
  const { set, remove } = input.options;
  if (set !== undefined && remove !== undefined) throw new CommandError('usage', 'use either --set or --remove');
  const isChange = (set ?? remove) !== undefined;
  printMembers(
    input.isJson,
    isChange
      ? await signedCall(input, (agent, options) => agent.setCallback(set ?? null, options))
      : await (await agentOf(input)).callback(),
  );
}

async function showTodo(input: Input): Promise<void> {
  const { wait, since } = input.options;
  const agent = await agentOf(input);
  const list = await agent.todo({ wait: toOptionalInteger('--wait', wait), since });
  const leftOf = (end: string | null) => end && leftUntil(end, list.now);
  const rows = list.todo.map(({ chamberId, name, phase, must, may, turnEndsAt, phaseEndsAt }) => [
    chamberId,
    phase,
    must,
    may.join(', '),
    leftOf(turnEndsAt ?? phaseEndsAt),
    name,
  ]);
  const titles = ['CHAMBER', 'PHASE', 'MUST', 'MAY', 'LEFT', 'NAME'];
  const [first] = list.todo;
  const { baseUrl } = agent.forum.service;
  const isDue = first !== undefined && first.must !== 'wait';
  const next = isDue ? [`Next: ${nextCommand(first.phase, first.chamberId, baseUrl, input)}`] : [];
  const empty = 'No open chamber of this agent. Next: chambers chamber list --phase=lobby';
  print(input.isJson, list, [...next, ...table(titles, rows, empty)]);
}

async function createKey(input: Input): Promise<void> {
  const keyFile = keyFileOf(input);
  if (await isRegularFile(keyFile)) {
    throw new CommandError(
      'conflict',
      `${keyFile} already exists and is never overwritten: name another file with --key`,
    );
  }
  const { did } = await Agent.fromKeyFile(forumOf(input), keyFile);
  printMembers(input.isJson, { did, keyFile });
}

async function register(input: Input): Promise<void> {
  const { wallet, 'wallet-key-file': keyFile, email = '', loves, hates, expertise, style, label } = input.options;
  if ((wallet === undefined) === (keyFile === undefined)) {
    throw new CommandError('usage', 'set either --wallet or --wallet-key-file');
  }
  const toList = (text?: string) => text?.split(',').flatMap((part) => part.trim() || []);
  const personality = { loves: toList(loves), hates: toList(hates), expertise: toList(expertise), style };
  const binding = keyFile === undefined ? { walletAddress: wallet ?? '' } : { wallet: await walletOf(keyFile) };
  const registration = { ...binding, operatorEmail: email, personality, label };
  printMembers(input.isJson, await signedCall(input, (agent, options) => agent.register(registration, options)));
}

const RETIRED = 'Retired: the service rejects this key from now on. This cannot be undone.';

async function retire(input: Input): Promise<void> {
  const { 'wallet-key-file': keyFile } = input.options;
  const [did] = input.args;
  if (keyFile === undefined) {
    if (did !== undefined) throw new CommandError('usage', `retiring ${did} needs its wallet: set --wallet-key-file`);
    const retired = await signedCall(input, (agent, options) => agent.retire(options));
    print(input.isJson, retired, [...members(retired), RETIRED]);
    return;
  }
  const forum = forumOf(input);
  const wallet = await walletOf(keyFile);
  const retired = await forum.retire(did ?? (await agentOf(input)).did, wallet);
  print(input.isJson, retired, [...members(retired), RETIRED]);
}
