// Checks that the READMEs are true: their programs and commands work when pasted, and their statements match the code.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Agent } from '../src/client/index.ts';
import { VARIABLES } from '../src/config.ts';
import { commitmentHash } from '../src/crypto/commitment.ts';
import { leafHash, nodeHash } from '../src/crypto/merkle.ts';
import { VERSION } from '../src/process/version.ts';
import { toHex } from '../src/vocabulary/values.ts';
import { newAgent, newChamber, REGISTRATION } from './client/live-service.ts';
import { isInstalled, ROOT, requireInstalled } from './kit/programs.ts';
import { startServer } from './mcp/seat-process.ts';
import { commandsOf, folder, linesOf, open, paste, pasteCommands, programsOf, SLOW, textOf } from './pasted.ts';

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

describe('README.md', () => {
  const [FIRST_MOVE = ''] = programsOf(README);

  it(`README.md has at most ${README_LINES_MAX} lines`, () => {
    expect(README.split('\n').length).toBeLessThanOrEqual(README_LINES_MAX);
  });

  it('the program of README.md makes a first signed move and reads it', SLOW, async () => {
    expect(linesOf(FIRST_MOVE)).toBeLessThanOrEqual(15);
    const { baseUrl } = await open();
    expect(await paste(FIRST_MOVE, baseUrl).ended).toBe('{ ok: true, turnOrder: 0 }\n');
    if (!isInstalled('curl')) return;
    const { output } = await pasteCommands(commandsOf(README, '/chambers/1/events'), baseUrl);
    expect(output).toContain('"name":"What should we build?"');
    expect(output).toContain('"type":"chamber.joined"');
  });

  it('README.md shows the same moves without our code', SLOW, async ({ skip }) => {
    requireInstalled(skip, 'curl', 'openssl', 'python3');
    const { baseUrl, forum } = await open();
    await pasteCommands(commandsOf(README, 'agent.sh'), baseUrl);
    expect(await forum.chambers()).toMatchObject([{ memberCount: 1 }, { memberCount: 1 }]);
  });
});

describe('src/client/README.md', () => {
  const [, TODO_LOOP = '', CONSUMER = ''] = programsOf(CLIENT);

  it('the agent of src/client/README.md handles the todo items of its chambers', SLOW, async () => {
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

  it('the consumer of src/client/README.md follows a chamber and resumes after its last event', SLOW, async () => {
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
    // The event that was being handled when the process died is repeated.
    await paste(CONSUMER, live.baseUrl, chamberId).printed(/^(2 chamber\.joined\n)?3 chamber\.joined\n$/);
  });
});

describe('src/mcp/README.md', () => {
  it('one paste from src/mcp/README.md sets up an agent for the host of a model', SLOW, async () => {
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
  it('the commands of src/audit/README.md export and audit a chamber', SLOW, async () => {
    const live = await open();
    const agent = await newAgent(live);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    await agent.joinChamber(chamberId);
    const { output } = await pasteCommands(commandsOf(AUDIT, 'export'), live.baseUrl);
    expect(output.match(/\b0 broken\b/g)).toHaveLength(4);
  });
});

describe('src/log/README.md', () => {
  it('the commands of src/log/README.md back up a database and check the copy', SLOW, async () => {
    const database = join(folder, 'chambers.db');
    const live = await open({ DATABASE_PATH: database });
    await newAgent(live);
    const { output } = await pasteCommands(commandsOf(LOG, 'backup'), live.baseUrl, { DATABASE_PATH: database });
    expect(output).toMatch(/^faults +0$/m);
  });

  it('src/log/README.md has the leaf of its example line', () => {
    const [, line = ''] = /```json\n(\{"chamberId":1,.*\})\n```/.exec(LOG) ?? [];
    expect(LOG).toContain(toHex(leafHash(Buffer.from(line))));
  });

  it('src/log/README.md has the tree of its three lines', () => {
    const [one, two, three] = ['one', 'two', 'three'].map((text) => leafHash(Buffer.from(text))) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ];
    const node = nodeHash(one, two);
    for (const hash of [one, two, three, node, nodeHash(node, three)]) expect(LOG).toContain(toHex(hash));
  });

  it('src/log/README.md has the commitment of its example', () => {
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
  it('src/README.md has the table of all variables with their defaults', () => {
    const cell = (value: unknown) => (value === undefined || value === false || `${value}` === '' ? ' ' : ` ${value} `);
    const rows = Object.entries<Variable>(VARIABLES).map(
      ([name, { fallback, production, about }]) => `| ${name} |${cell(fallback)}|${cell(production)}| ${about} |`,
    );
    expect(SERVICE.split('\n').filter((line) => /^\| [A-Z][A-Z_]+ \|/.test(line))).toEqual(rows);
  });
});

describe('every page', () => {
  it.each(PAGES)('the page %s has no broken links', (page) => {
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

/** Returns whether a relative link leads to a file, and to its heading if the link names one. */
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

it('no document runs a program that npx would download', () => {
  const files = [...PAGES, ...globSync('src/**/*.ts', { cwd: ROOT })];
  expect(files.filter((file) => /npx chambers/.test(textOf(file)))).toEqual([]);
});

it('bin/chambers runs the command line from any folder', () => {
  const { stdout, status } = spawnSync(join(ROOT, 'bin/chambers'), ['--version'], { cwd: '/', encoding: 'utf8' });
  expect({ stdout, status }).toEqual({ stdout: `${VERSION}\n`, status: 0 });
});
