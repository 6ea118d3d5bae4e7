// The manual is true: what it prints is what the code does, and what it tells to paste works.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeEach, expect, it, vi } from 'vitest';
import { Agent } from '../src/client/index.ts';
import { readConfig, VARIABLES } from '../src/config.ts';
import { commitmentHash } from '../src/crypto/commitment.ts';
import { leafHash, nodeHash } from '../src/crypto/merkle.ts';
import { startService } from '../src/server.ts';
import { toHex } from '../src/vocabulary/hex.ts';
import { ROOT } from './kit/programs.ts';
import { atEnd, temporaryFolder } from './kit/temporary.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** The programs that the manual tells to paste, in their order. */
const [FIRST_MOVE = '', LIVING_AGENT = '', CONSUMER = ''] = [...README.matchAll(/<<'JS'\n([\s\S]*?)\nJS\n/g)].map(
  ([, program]) => program,
);

it('makes a first signed move with the program that it prints', async () => {
  expect(linesOf(FIRST_MOVE)).toBeLessThanOrEqual(15);
  const url = await serve();
  expect(await paste(FIRST_MOVE, url).ended).toBe('{ ok: true, turnOrder: 0 }\n');
});

it('has an agent live through a chamber with the program that it prints', async () => {
  expect(linesOf(LIVING_AGENT)).toBeLessThanOrEqual(15);
  const url = await serve();
  const { forum, chamberId } = await shortChamber(url);
  const agent = paste(LIVING_AGENT, url, chamberId);
  const types: string[] = [];
  for await (const event of forum.events(chamberId)) {
    types.push(event.type);
    if (event.type === 'allocation.revealed') break;
  }
  await agent.kill();
  expect(new Set(types)).toEqual(
    new Set([
      'chamber.created',
      'chamber.joined',
      'chamber.proposed',
      'chamber.passed',
      'chamber.debated',
      'allocation.committed',
      'allocation.revealed',
    ]),
  );
});

it('has a consumer follow a chamber with the program that it prints, and go on where it was', async () => {
  expect(linesOf(CONSUMER)).toBeLessThanOrEqual(10);
  const url = await serve();
  const { agent, chamberId } = await shortChamber(url);
  const first = paste(CONSUMER, url, chamberId);
  await first.printed(/^1 chamber\.created\n$/);
  await agent.joinChamber(chamberId);
  await first.printed(/^1 chamber\.created\n2 chamber\.joined\n$/);
  await first.kill();
  const other = Agent.generate(url);
  await other.register(BINDING);
  await other.joinChamber(chamberId);
  // One that was being handled when the process died would come again.
  await paste(CONSUMER, url, chamberId).printed(/^(2 chamber\.joined\n)?3 chamber\.joined\n$/);
});

it('prints the bash example as it is', () => {
  expect(README).toContain(readFileSync(join(ROOT, 'test/examples/agent.sh'), 'utf8').trimEnd());
});

it('gives the leaf of its example line', () => {
  const [, line = ''] = /```json\n(\{"chamberId":1,.*\})\n```/.exec(README) ?? [];
  expect(README).toContain(toHex(leafHash(Buffer.from(line))));
});

it('gives the tree of its three lines', () => {
  const [one, two, three] = ['one', 'two', 'three'].map((text) => leafHash(Buffer.from(text))) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const node = nodeHash(one, two);
  for (const hash of [one, two, three, node, nodeHash(node, three)]) expect(README).toContain(toHex(hash));
});

it('gives the commitment of its example', () => {
  const commitment = commitmentHash({
    chamberId: 1,
    did: 'did:key:z6MkjUU7zS7SSqobZPPrcgzgFAJseVLD5KyQEsMpfyMR7dLA',
    allocations: [
      { ideaId: 'idea-1', bps: 6000 },
      { ideaId: 'idea-2', bps: 4000 },
    ],
    salt: `0x${'5a'.repeat(32)}`,
  });
  expect(README).toContain(commitment);
});

it.each(Object.entries(VARIABLES))('names the variable %s', (name, { about }) => {
  const row = README.split('\n').find((line) => line.startsWith(`| ${name} |`));
  expect(row).toContain(about);
});

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

const BINDING = { walletAddress: `0x${'22'.repeat(20)}`, operatorEmail: 'ops@example.org' };

function linesOf(program: string): number {
  return program.split('\n').filter((line) => line !== '').length;
}

async function serve(): Promise<string> {
  const service = await startService({
    config: readConfig({ PORT: '0', DATABASE_PATH: ':memory:', CHAIN: 'none' }),
    logger: pino({ level: 'silent' }),
    version: 'test',
    onFatal: (error) => {
      throw error;
    },
  });
  atEnd(() => service.stop());
  return service.url;
}

/** A chamber whose phases last two seconds each, by an agent that has not joined it. */
async function shortChamber(url: string) {
  const agent = Agent.generate(url);
  await agent.register(BINDING);
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000);
  const { chamberId } = await agent.createChamber({
    name: 'Short',
    lobbyDeadline: inSeconds(2),
    proposalDeadline: inSeconds(4),
    debateDeadline: inSeconds(6),
    allocateCommitDeadline: inSeconds(8),
    allocateRevealDeadline: inSeconds(10),
  });
  return { agent, forum: agent.forum, chamberId };
}

interface Pasted {
  /** All it printed, once it has ended. */
  readonly ended: Promise<string>;
  printed(text: RegExp): Promise<void>;
  kill(): Promise<void>;
}

/** Runs the program as it is printed, but for the service's address and where its files are. */
function paste(program: string, url: string, chamberId = 1): Pasted {
  const own = program.replace('http://127.0.0.1:8787', url).replace("'data/", `'${folder}/`);
  const args = ['--input-type=module', '-', String(chamberId)];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const closed = once(child, 'close');
  const kill = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  atEnd(kill);
  child.stdin.end(own);
  return {
    ended: closed.then(() => output),
    printed: (text) => vi.waitFor(() => expect(output).toMatch(text), { timeout: 10_000 }),
    kill,
  };
}
