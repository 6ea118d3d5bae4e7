// The amount that a model reads to take part over MCP: four agents with realistic contributions play a chamber, following the
// server's instructions and prompt. The bench counts the results of tools, one copy of each, in tokens of four characters.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Client, type JSONRPCMessage, Client as McpClient, type Transport } from '@modelcontextprotocol/client';
import { Agent } from '../../src/client/index.ts';
import { findLine } from '../../src/process/child-output.ts';
import { ROOT } from '../kit/programs.ts';
import type { Options } from './options.ts';
import type { Report } from './report.ts';
import { SPEAKERS, type Speaker } from './speech.ts';
import { bound, compare, type Row } from './verdicts.ts';

const CHARS_PER_TOKEN = 4;
const CALLS_MAX = 20;
const ROUNDS = { proposal: 1, debate: 3 };
const TURN_SECONDS = 120;
const CALL_MILLIS = { timeout: 60_000 };

interface Usage {
  /** The number of characters in the results of each tool. */
  readonly chars: number;
  readonly charsOfReads: number;
  readonly calls: number;
  /** The characters of tools/list and the instructions, which a model reads before the first call. */
  readonly charsBefore: number;
}

export async function benchTokens({ against }: Options): Promise<Report> {
  const sides = [{ name: 'service', root: ROOT }, ...(against === undefined ? [] : [{ name: 'other', root: against }])];
  const rows: Row[] = [];
  for (const { name, root } of sides) {
    process.stderr.write(`  ${name}\n`);
    const usages = await playChamber(root);
    const row = (what: string, unit: string, figure: (usage: Usage) => number) =>
      rows.push({ what: `${name}: ${what}`, unit, values: usages.map(figure) });
    row('results that an agent reads', 'tokens', ({ chars }) => chars / CHARS_PER_TOKEN);
    row('those of read', 'tokens', ({ charsOfReads }) => charsOfReads / CHARS_PER_TOKEN);
    row('calls of an agent', 'calls', ({ calls }) => calls);
    row('tools/list and instructions', 'tokens', ({ charsBefore }) => charsBefore / CHARS_PER_TOKEN);
  }
  const [tokens, , calls, , others] = rows as [Row, Row, Row, Row, Row?];
  const half = { is: 'at most', value: 0.5 } as const;
  return {
    bench: 'tokens (what a model reads to take part in a chamber of four over MCP; a value for each agent)',
    rows,
    verdicts: [
      bound({ what: 'calls of an agent', of: calls, target: { is: 'at most', value: CALLS_MAX } }),
      ...(others === undefined
        ? []
        : [compare({ what: 'tokens: service / other', of: tokens, to: others, target: half })]),
    ],
  };
}

async function playChamber(root: string): Promise<readonly Usage[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tokens-'));
  const processes: ChildProcess[] = [];
  const start = (file: string, args: readonly string[], env: Readonly<Record<string, string>>) => {
    const child = spawn(process.execPath, [join(root, 'dist/src', file), ...args], {
      cwd: root,
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    processes.push(child);
    return child;
  };
  try {
    const service = start('main.js', [], { PORT: '0', DATABASE_PATH: join(folder, 'log.db'), LOG_LEVEL: 'silent' });
    const [, url = ''] = await findLine(service.stdout, /^listening on (\S+)$/);
    const players = await Promise.all(
      SPEAKERS.map(async (speaker, n) => {
        const keyFile = join(folder, `${n}.json`);
        const agent = await Agent.fromKeyFile(url, keyFile);
        await agent.register({ walletAddress: `0x${'11'.repeat(20)}`, operatorEmail: 'agent@example.org' });
        const client = await connect(start('cli.js', ['mcp', `--url=${url}`, `--key=${keyFile}`], {}));
        return new Player(client, speaker);
      }),
    );
    const [first] = players as [Player];
    await first.prepare();
    const chamberId = await first.open();
    for (const player of players) await player.join(chamberId);
    await first.call('start', { chamberId });
    await Promise.all(players.map((player) => player.play(chamberId)));
    return players.map(({ usage }) => usage);
  } finally {
    for (const child of processes) {
      child.kill();
      if (child.exitCode === null) await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

async function connect({ stdin, stdout }: ChildProcess): Promise<Client> {
  if (stdin === null || stdout === null) throw new Error('the process has no pipes');
  const transport: Transport = {
    start: async () => {
      createInterface(stdout).on('line', (line) => transport.onmessage?.(JSON.parse(line) as JSONRPCMessage));
    },
    send: async (message) => void stdin.write(`${JSON.stringify(message)}\n`),
    close: async () => void stdin.end(),
  };
  const client = new McpClient({ name: 'bench', version: '1' });
  await client.connect(transport);
  return client;
}

interface Item {
  readonly chamberId: number;
  readonly phase: string;
  readonly must: string;
}

/** Follows the instructions, with a speaker in place of a model. */
class Player {
  usage: Usage = { chars: 0, charsOfReads: 0, calls: 0, charsBefore: 0 };
  readonly #client: Client;
  readonly #speaker: Speaker;
  #next = 0;
  #said = 0;
  /** Whether the server passes on behalf of an agent that is done. */
  #canBeDone = false;

  constructor(client: Client, speaker: Speaker) {
    this.#client = client;
    this.#speaker = speaker;
  }

  async call<Result>(name: string, args: object = {}): Promise<Result> {
    const { content, isError } = await this.#client.callTool({ name, arguments: { ...args } }, CALL_MILLIS);
    const [first] = content;
    if (first?.type !== 'text' || isError) throw new Error(`${name}: ${JSON.stringify(content)}`);
    const { chars, charsOfReads, calls, charsBefore } = this.usage;
    const { length } = first.text;
    this.usage = {
      chars: chars + length,
      charsOfReads: charsOfReads + (name === 'read' ? length : 0),
      calls: calls + 1,
      charsBefore,
    };
    return JSON.parse(first.text) as Result;
  }

  async prepare(): Promise<void> {
    const listed = await this.#client.listTools();
    this.#canBeDone = listed.tools.some(({ name }) => name === 'pass');
    const instructions = this.#client.getInstructions() ?? '';
    this.usage = { ...this.usage, charsBefore: JSON.stringify(listed).length + instructions.length };
  }

  async open(): Promise<number> {
    const { chamberId } = await this.call<{ chamberId: number }>('open', {
      name: 'What shall our street build?',
      topic: 'One year, one fund, and every idea has to say what it costs.',
      turnSeconds: TURN_SECONDS,
      rounds: ROUNDS,
    });
    return chamberId;
  }

  async join(chamberId: number): Promise<void> {
    if (this.usage.charsBefore === 0) await this.prepare();
    await this.#read(chamberId);
    await this.call('join', { chamberId });
  }

  async play(chamberId: number): Promise<void> {
    while (true) {
      const { todo, over } = await this.call<{ todo: readonly Item[]; over: readonly unknown[] }>('wait');
      // An item that an earlier release reports as over has no outcome yet.
      if (typeof over[0] === 'number') await this.#read(chamberId);
      if (over.length > 0) return;
      for (const item of todo) await this.#act(item);
    }
  }

  async #act({ chamberId, phase, must }: Item): Promise<void> {
    if (must === 'pass' && phase === 'PROPOSAL') {
      await this.call('propose', { chamberId, ...this.#speaker.idea, ...this.#ending });
    } else if (must === 'pass') {
      await this.#read(chamberId);
      const said = this.#speaker.comments[this.#said++];
      if (said !== undefined) {
        await this.call('debate', { chamberId, comment: said.comment, ideaId: said.on, pass: true });
      } else if (this.#canBeDone) await this.call('pass', { chamberId, done: true });
      else await this.call('debate', { chamberId, pass: true });
    } else if (must === 'commit') {
      await this.#read(chamberId);
      const allocations = SPEAKERS.map(({ idea }) => ({ ideaId: idea.ticker, bps: 2_500 }));
      await this.call('allocate', { chamberId, allocations });
    }
  }

  get #ending() {
    return this.#canBeDone ? { done: true } : { pass: true };
  }

  async #read(chamberId: number): Promise<void> {
    const after = this.#next === 0 ? {} : { after: this.#next };
    ({ next: this.#next } = await this.call<{ next: number }>('read', { chamberId, ...after }));
  }
}
