// The READMEs are true: their programs and commands work when pasted, and what they state is what the code does.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Agent, type ForumClient } from '../src/client/index.ts';
import { VARIABLES } from '../src/config.ts';
import { commitmentHash } from '../src/crypto/commitment.ts';
import { leafHash, nodeHash } from '../src/crypto/merkle.ts';
import { VERSION } from '../src/process/version.ts';
import { toHex } from '../src/vocabulary/values.ts';
import {
  type LiveService,
  newAgent,
  newChamber,
  openLiveService,
  PHASE_MILLIS,
  REGISTRATION,
} from './client/live-service.ts';
import { advanceChain } from './client/play-chamber.ts';
import { isInstalled, ROOT, requireInstalled } from './kit/programs.ts';
import { atEnd, temporaryFolder } from './kit/temporary.ts';
import { eventually } from './kit/until.ts';
import { startServer } from './mcp/seat-process.ts';

const PAGES = globSync(['*.md', '.github/*.md', 'deploy/*.md', 'src/**/README.md', 'test/**/README.md'], { cwd: ROOT });
const [README, SERVICE, LOG, CLIENT, MCP, AUDIT] = [
  'README.md',
  'src/README.md',
  'src/log/README.md',
  'src/client/README.md',
  'src/mcp/README.md',
  'src/audit/README.md',
].map(textOf) as [string, string, string, string, string, string];

const README_LINES_MAX = 180;
const URL_SHOWN = 'http://127.0.0.1:8787';
/** A loaded machine starts a process in seconds. */
const SLOW = { timeout: 120_000 };

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

describe('README.md', () => {
  const [FIRST_MOVE = ''] = programsOf(README);

  it(`has at most ${README_LINES_MAX} lines`, () => {
    expect(README.split('\n').length).toBeLessThanOrEqual(README_LINES_MAX);
  });

  it('makes a first signed move, and looks at it', SLOW, async () => {
    expect(linesOf(FIRST_MOVE)).toBeLessThanOrEqual(15);
    const { baseUrl } = await open();
    expect(await paste(FIRST_MOVE, baseUrl).ended).toBe('{ ok: true, turnOrder: 0 }\n');
    if (!isInstalled('curl')) return;
    const { output } = await pasteCommands(commandsOf(README, '/chambers/1/events'), baseUrl);
    expect(output).toContain('"name":"What should we build?"');
    expect(output).toContain('"type":"chamber.joined"');
  });

  it('makes the same moves without our code', SLOW, async ({ skip }) => {
    requireInstalled(skip, 'curl', 'openssl', 'python3');
    const { baseUrl, forum } = await open();
    await pasteCommands(commandsOf(README, 'agent.sh'), baseUrl);
    expect(await forum.chambers()).toMatchObject([{ memberCount: 1 }, { memberCount: 1 }]);
  });

  it('plays a whole chamber on the command line', SLOW, async () => {
    const live = await open({ CHAIN: '' });
    // Long phases, which end when their moves are made, however long the commands take.
    const commands = commandsOf(README, 'chamber create').replaceAll(/=\d+s\b/g, '=1h');
    const pasted = pasteCommands(commands, live.baseUrl, live.sharedTimeEnv);
    await Promise.race([pasted, eventually(() => live.forum.chamber(1), SLOW.timeout)]);
    const turns = ['chamber.passed', 'chamber.passed'];
    await Promise.race([
      pasted,
      endPhases(live, ['chamber.joined', ...turns, 'allocation.committed'])
        .then(() => advanceChain(live))
        .then(() => endPhases(live, ['allocation.revealed'])),
    ]);
    const { output } = await pasted;
    expect(output).toMatch(/^COMMITTED$/m);
    expect(output).toMatch(/\b0 broken\b/);
  });
});

describe('src/client/README.md', () => {
  const [LIVING_AGENT = '', TODO_LOOP = '', CONSUMER = ''] = programsOf(CLIENT);

  it('has an agent live through a chamber', SLOW, async () => {
    expect(linesOf(LIVING_AGENT)).toBeLessThanOrEqual(18);
    const live = await open();
    const { chamberId } = await (await newAgent(live)).createChamber(newChamber(live.now()));
    const agent = paste(LIVING_AGENT, live.baseUrl, chamberId);
    const moves = ['chamber.joined', 'chamber.passed', 'chamber.debated', 'allocation.committed'];
    const types = await endPhases(live, moves, agent.advance);
    for await (const { type } of live.forum.events(chamberId, { after: types.length })) {
      types.push(type);
      if (type === 'allocation.revealed') break;
    }
    await agent.kill();
    expect(new Set(types)).toEqual(new Set(['chamber.created', 'chamber.proposed', ...moves, 'allocation.revealed']));
  });

  it('has an agent do what is due in its chambers', SLOW, async () => {
    const live = await open();
    const agent = await Agent.fromKeyFile(live.baseUrl, join(folder, 'client.json'));
    await agent.register(REGISTRATION);
    const ann = await newAgent(live);
    const rounds = { proposal: 1, debate: 1 };
    const { chamberId } = await ann.createChamber({ ...newChamber(live.now()), turnSeconds: 3_600, rounds });
    for (const each of [ann, agent]) await each.joinChamber(chamberId);
    await ann.start(chamberId);
    await ann.propose(chamberId, { name: 'Reserve', ticker: 'RSV' });
    const loop = paste(TODO_LOOP, live.baseUrl);
    for await (const _ of ann.turns(chamberId)) await ann.pass(chamberId);
    await ann.commit(chamberId, [], { abstain: true });
    for await (const { type, did } of live.forum.events(chamberId)) {
      if (type === 'allocation.revealed' && did === agent.did) break;
    }
    await loop.kill();
    const { tally } = await live.forum.allocations(chamberId);
    expect(tally).toEqual([{ ideaId: 'idea-1', backers: 1, totalBps: 10_000 }]);
  });

  it('has a consumer follow a chamber, and resume where it was', SLOW, async () => {
    expect(linesOf(CONSUMER)).toBeLessThanOrEqual(10);
    const live = await open();
    const [ada, bob] = [await newAgent(live), await newAgent(live)];
    const { chamberId } = await ada.createChamber(newChamber(live.now()));
    const first = paste(CONSUMER, live.baseUrl, chamberId);
    await first.printed(/^1 chamber\.created\n$/);
    await ada.joinChamber(chamberId);
    await first.printed(/^1 chamber\.created\n2 chamber\.joined\n$/);
    await first.kill();
    await bob.joinChamber(chamberId);
    // An event that was being handled when the process died is repeated.
    await paste(CONSUMER, live.baseUrl, chamberId).printed(/^(2 chamber\.joined\n)?3 chamber\.joined\n$/);
  });
});

describe('src/mcp/README.md', () => {
  it('sets an agent up for the host of a model by one paste', SLOW, async () => {
    const { baseUrl, forum } = await open();
    const { output } = await pasteCommands(commandsOf(MCP, 'chambers init'), baseUrl);
    const config = JSON.parse(output.slice(output.indexOf('{\n'), output.lastIndexOf('\n}') + 2));
    const seat = await startServer('modern', { ...config.mcpServers.chambers, env: {} });
    const { did, walletProven } = await seat.call<{ did: string; walletProven: boolean }>('whoami');
    expect(walletProven).toBe(true);
    const { chamberId } = await seat.call<{ chamberId: number }>('open', { name: 'What should we build?' });
    await seat.call('join', { chamberId });
    expect((await forum.chamber(chamberId)).members).toEqual([did]);
  });
});

describe('src/audit/README.md', () => {
  it('exports and audits a chamber', SLOW, async () => {
    const live = await open();
    const agent = await newAgent(live);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    await agent.joinChamber(chamberId);
    const { output } = await pasteCommands(commandsOf(AUDIT, 'export'), live.baseUrl);
    expect(output.match(/\b0 broken\b/g)).toHaveLength(4);
  });
});

describe('src/log/README.md', () => {
  it('backs a database up and checks the copy', SLOW, async () => {
    const database = join(folder, 'chambers.db');
    const live = await open({ DATABASE_PATH: database });
    await newAgent(live);
    const { output } = await pasteCommands(commandsOf(LOG, 'backup'), live.baseUrl, { DATABASE_PATH: database });
    expect(output).toMatch(/^faults +0$/m);
  });

  it('has the leaf of its example line', () => {
    const [, line = ''] = /```json\n(\{"chamberId":1,.*\})\n```/.exec(LOG) ?? [];
    expect(LOG).toContain(toHex(leafHash(Buffer.from(line))));
  });

  it('has the tree of its three lines', () => {
    const [one, two, three] = ['one', 'two', 'three'].map((text) => leafHash(Buffer.from(text))) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ];
    const node = nodeHash(one, two);
    for (const hash of [one, two, three, node, nodeHash(node, three)]) expect(LOG).toContain(toHex(hash));
  });

  it('has the commitment of its example', () => {
    const commitment = commitmentHash({
      chamberId: 1,
      did: 'did:key:z6MkjUU7zS7SSqobZPPrcgzgFAJseVLD5KyQEsMpfyMR7dLA',
      allocations: [
        { ideaId: 'idea-1', bps: 6000 },
        { ideaId: 'idea-2', bps: 4000 },
      ],
      salt: `0x${'5a'.repeat(32)}`,
    });
    expect(LOG).toContain(commitment);
  });
});

describe('src/README.md', () => {
  it('has the table of all variables with their defaults', () => {
    const cell = (value: unknown) => (value === undefined || value === false || `${value}` === '' ? ' ' : ` ${value} `);
    const rows = Object.entries<Variable>(VARIABLES).map(
      ([name, { fallback, production, about }]) => `| ${name} |${cell(fallback)}|${cell(production)}| ${about} |`,
    );
    expect(SERVICE.split('\n').filter((line) => /^\| [A-Z][A-Z_]+ \|/.test(line))).toEqual(rows);
  });
});

describe('every page', () => {
  it.each(PAGES)('%s links only to what exists', (page) => {
    const links = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    const broken = links.filter((link) => !/^https?:/.test(link) && !isTarget(page, link));
    expect(broken).toEqual([]);
  });
});

interface Variable {
  readonly fallback: unknown;
  readonly production?: unknown;
  readonly about: string;
}

function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** The JavaScript programs that the page says to paste. */
function programsOf(page: string): readonly string[] {
  return [...page.matchAll(/<<'JS'\n([\s\S]*?)\nJS\n/g)].map(([, program = '']) => program);
}

/** The block of shell commands that holds the text. */
function commandsOf(page: string, text: string): string {
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  const [block, ...others] = blocks.filter((each) => each.includes(text) && !each.includes("<<'JS'"));
  if (block === undefined || others.length > 0) throw new Error(`not one block of commands with ${text}`);
  return block;
}

function linesOf(program: string): number {
  return program.split('\n').filter((line) => line !== '').length;
}

/** Whether a relative link leads to a file, and to a heading of it where it names one. */
function isTarget(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, target))) return false;
  if (anchor === undefined) return true;
  const headings = [...textOf(target).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return headings
    .map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    )
    .includes(anchor);
}

async function open(settings?: Readonly<Record<string, string>>): Promise<LiveService> {
  const live = await openLiveService(settings);
  atEnd(() => live.stop());
  return live;
}

/** Waits for events of these types, in this order, and ends the phase after each. Returns all types until then. */
async function endPhases(
  { forum, advance }: { readonly forum: ForumClient; advance(millis: number): void },
  awaited: readonly string[],
  onAdvance: (millis: number) => void = () => {},
): Promise<string[]> {
  const types: string[] = [];
  let ended = 0;
  for await (const { type } of forum.events(1)) {
    types.push(type);
    if (type !== awaited[ended]) continue;
    advance(PHASE_MILLIS);
    onAdvance(PHASE_MILLIS);
    ended++;
    if (ended === awaited.length) break;
  }
  return types;
}

/** Loaded before a pasted program: `sharedTime`, options of a client whose clock is ahead as far as the test says. */
const SHARED_TIME = `
let ahead = 0;
const sleepers = new Set();
process.on('message', (millis) => {
  ahead += millis;
  for (const wake of sleepers) wake();
});
process.channel.unref();
const sleep = (millis, signal) => new Promise((resolve, reject) => {
  signal?.throwIfAborted();
  const end = (settle) => () => {
    clearTimeout(timer);
    sleepers.delete(wake);
    settle(signal?.reason);
  };
  const wake = end(resolve);
  const timer = setTimeout(wake, millis);
  sleepers.add(wake);
  signal?.addEventListener('abort', end(reject), { once: true });
});
const fetchWithoutDate = async (url, init) => {
  const { status, headers, body } = await fetch(url, init);
  const kept = new Headers(headers);
  kept.delete('Date');
  return new Response(body, { status, headers: kept });
};
globalThis.sharedTime = { clock: { now: () => Date.now() + ahead, sleep }, fetch: fetchWithoutDate };
`;

interface Pasted {
  /** All its output, once it has ended. */
  readonly ended: Promise<string>;
  printed(text: RegExp): Promise<void>;
  /** Moves its clock ahead. */
  advance(millis: number): void;
  kill(): Promise<void>;
}

/** Runs the program as it is printed, except for the service's address, the folder of its files and a living agent's clock. */
function paste(program: string, url: string, chamberId = 1): Pasted {
  const forum = `new (await import('chamber-coordination-service/client')).ForumClient('${url}', sharedTime)`;
  const own = program
    .replace(`fromKeyFile('${URL_SHOWN}'`, `fromKeyFile(${forum}`)
    .replace(URL_SHOWN, url)
    .replace("'data/", `'${folder}/`);
  const preload = `data:text/javascript,${encodeURIComponent(SHARED_TIME)}`;
  const child = spawn(process.execPath, ['--import', preload, '--input-type=module', '-', String(chamberId)], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  });
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const closed = once(child, 'close');
  const kill = async () => {
    child.kill('SIGKILL');
    await closed;
  };
  atEnd(kill);
  child.stdin?.end(own);
  return {
    ended: closed.then(() => output),
    printed: (text) => eventually(() => expect(output).toMatch(text), 180_000),
    advance: (millis) => void child.send(millis),
    kill,
  };
}

it('no document runs a program that npx would fetch where it is not installed', () => {
  const files = [...PAGES, ...globSync('src/**/*.ts', { cwd: ROOT })];
  expect(files.filter((file) => /npx chambers/.test(textOf(file)))).toEqual([]);
});

it('bin/chambers runs the command line from any folder', () => {
  const { stdout, status } = spawnSync(join(ROOT, 'bin/chambers'), ['--version'], { cwd: '/', encoding: 'utf8' });
  expect({ stdout, status }).toEqual({ stdout: `${VERSION}\n`, status: 0 });
});

/**
 * What stands for bin/chambers and npm: the command line itself, from its sources. `chamber wait` sleeps until a phase ends, by timers that
 * do not follow the clock that the test moves: here it asks again and again.
 */
const COMMAND_LINE = `
set -eu
chambers() {
  if [ "$1 $2" != 'chamber wait' ]; then "$NODE" src/cli.ts "$@"; return; fi
  until "$NODE" src/cli.ts chamber show "$3" --json | grep -qi "\\"phase\\":\\"$4\\""; do sleep 1; done
}
npm() { shift 4; "$NODE" src/cli.ts audit "$@"; }
`;

/** Runs shell commands as they are printed, except for the service's address and for the folder of their files. */
async function pasteCommands(commands: string, url: string, env: Readonly<Record<string, string>> = {}) {
  const own = commands.replaceAll(URL_SHOWN, url).replaceAll('data/', `${folder}/`);
  const child = spawn('bash', ['-c', COMMAND_LINE + own], {
    cwd: ROOT,
    env: { ...process.env, NODE: process.execPath, CHAMBERS_URL: url, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  // The children are ended too: they would otherwise outlive a test that fails.
  atEnd(() => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const [exitCode] = await once(child, 'close');
  expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
  return { output };
}
