// The npm packages as users get them: packed and installed offline in an empty folder. The programs of their READMEs run
// unchanged, as ES modules and with require(), on this Node and on Node 20 if one is installed.
import { execFile, execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Move } from '../../src/moves/move.ts';
import { chamberMoves } from '../../src/moves/registry.ts';
import { newAgent, newChamber, sharedLiveService } from '../client/live-service.ts';
import { ROOT } from '../kit/programs.ts';

const SLOW = { timeout: 120_000 };
const PACKAGES = join(ROOT, 'dist/packages');
const URL_SHOWN = 'http://127.0.0.1:8787';
const CLIENT_GZIP_BYTES_MAX = 48 * 1024;
/** A model reads the whole skill into its context. */
const SKILL_BYTES_MAX = 6_000;
const run = promisify(execFile);

let folder: string;
const live = sharedLiveService();
beforeAll(async () => {
  folder = live.folder;
  const { PATH, HOME } = process.env;
  const npm = { cwd: folder, env: { PATH, HOME, NODE_ENV: 'test' } };
  const sources = [join(PACKAGES, 'chambers-client'), join(PACKAGES, 'chambers-audit'), join(ROOT, 'node_modules/ws')];
  const { stdout } = await run('npm', ['pack', '--silent', '--ignore-scripts', ...sources], npm);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const files = stdout
    .trim()
    .split('\n')
    .map((file) => `./${file}`);
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...files], npm);
});

it('the packages install nothing else and compile nothing', () => {
  const installed = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(installed).toEqual(['chambers-audit', 'chambers-client', 'ws']);
  const files = readdirSync(join(folder, 'node_modules'), { recursive: true, encoding: 'utf8' });
  expect(files.filter((file) => /binding\.gyp|\.node$/.test(file))).toEqual([]);
});

it.each(['chambers-client', 'chambers-audit'])('%s has a skill with the package’s name and every move', (name) => {
  const skill = readFileSync(join(folder, 'node_modules', name, 'SKILL.md'), 'utf8');
  expect(skill).toMatch(new RegExp(`^---\nname: ${name}\ndescription: [^\n]{1,1024}\n---\n`));
  expect(Buffer.byteLength(skill)).toBeLessThan(SKILL_BYTES_MAX);
  expect(skill).toContain('With this package: ');
  for (const { method, path, texts } of Object.values<Move>(chamberMoves)) {
    if (texts.guide !== undefined) expect(skill).toContain(`${method} ${path.replace(':id', '{id}')}`);
  }
});

/** This Node, and the first Node 20 on the PATH outside of the project. */
const NODES = [
  process.execPath,
  ...outsideNodes()
    .filter((path) => versionOf(path).startsWith('v20.'))
    .slice(0, 1),
];

describe.each(NODES.map((path) => [versionOf(path), path]))('on Node %s', (_, node) => {
  const runAs = async (name: string) => {
    const runs = (['mjs', 'cjs'] as const).map((kind) => run(node, [program(name, kind)], { cwd: folder }));
    return (await Promise.all(runs)).map(({ stdout }) => stdout);
  };

  it('chambers-client makes a first move as its README shows, with import and require', SLOW, async () => {
    const printed = '{ ok: true, turnOrder: 0 }\n1 chamber.created\n2 chamber.joined\n';
    expect(await runAs('chambers-client')).toEqual([printed, printed]);
  });

  it('chambers-audit audits a service as its README shows, with import and require', SLOW, async () => {
    await joinedChamber();
    const [imported = '', required] = await runAs('chambers-audit');
    expect(imported).toMatch(/^0 \[\n? *\{\s*chamberId: \d+,\s*verdict: 'verified',\s*root: '0x[0-9a-f]{64}'/);
    expect(imported).not.toMatch(/broken|undecided/);
    expect(required).toBe(imported);
  });

  it('chambers-audit has a working command', SLOW, async () => {
    const chamberId = await joinedChamber();
    const command = join(folder, 'node_modules/.bin/chambers-audit');
    const words = [live.baseUrl, `--chamber=${chamberId}`, '--json'];
    const { stdout } = await run(node, [command, ...words], { cwd: folder });
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'verified', chambers: [{ chamberId, moves: 2 }] });
    const fault = await run(node, [command, live.baseUrl, '--chamer=1'], { cwd: folder }).catch((error) => error);
    expect(fault).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^usage: .*--chamer.*chambers-audit --help\n$/),
    });
  });
});

it('chambers-client has the types of every event, with import and require', SLOW, async () => {
  const source = `
import { Agent, type ChamberEvent } from 'chambers-client';
export async function sum(agent: Agent): Promise<number> {
  let total = 0;
  for await (const event of agent.forum.events(1)) total += orderOf(event);
  return total;
}
function orderOf(event: ChamberEvent): number {
  if (event.type === 'chamber.joined') return event.payload.turnOrder;
  // @ts-expect-error: no such member in this type of event
  if (event.type === 'chamber.passed') return event.payload.turnOrder;
  return event.type === 'chamber.committed' ? event.payload.eventCount : 0;
}
`;
  const files = ['events.mts', 'events.cts'];
  for (const file of files) writeFileSync(join(folder, file), source);
  const options = '--strict --noEmit --module nodenext --target es2023 --lib es2023,dom,dom.asynciterable'.split(' ');
  const compiling = run(join(ROOT, 'node_modules/.bin/tsc'), [...options, '--types', '', ...files], { cwd: folder });
  expect(await compiling.catch(({ stdout }) => stdout)).toMatchObject({ stdout: '' });
});

it('chambers-client is at most 48 KB for a browser, and imports nothing in it', async () => {
  const entry = join(folder, 'node_modules/chambers-client/esm/index.js');
  const bundle = await rolldown({ input: entry, platform: 'browser', external: ['ws'] });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  const [chunk] = output;
  expect(output).toHaveLength(1);
  expect([chunk.imports, chunk.dynamicImports]).toEqual([[], ['ws']]);
  expect(gzipSync(chunk.code).length).toBeLessThanOrEqual(CLIENT_GZIP_BYTES_MAX);
});

it.each(['chambers-client', 'chambers-audit'])(
  '%s adds nothing to the bundle of a program that does not use it',
  async (name) => {
    for (const format of ['esm', 'cjs']) {
      const entry = join(folder, `unused-${name}-${format}.js`);
      writeFileSync(entry, `import './node_modules/${name}/${format}/index.js';\nconsole.log('mine');\n`);
      const bundle = await rolldown({ input: entry, platform: 'node' });
      const { output } = await bundle.generate({ format: 'esm', minify: true });
      expect(output[0].code.trim()).toMatch(/^console\.log\(`mine`\);(export\{\};)?$/);
    }
  },
);

it('only the package’s own manifest has imports, because tools read no others', () => {
  const manifests = globSync('node_modules/chambers-*/*/**/package.json', { cwd: folder });
  expect(manifests.map((path) => JSON.parse(readFileSync(join(folder, path), 'utf8')))).toEqual([
    { type: 'commonjs', sideEffects: false },
    { type: 'commonjs', sideEffects: false },
  ]);
});

async function joinedChamber(): Promise<number> {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  return chamberId;
}

/** Writes the program of a package's README into the folder, with the address of the test's service. */
function program(name: string, kind: 'mjs' | 'cjs'): string {
  const [, text = ''] = /```js\n([\s\S]*?)```/.exec(readFileSync(join(PACKAGES, name, 'README.md'), 'utf8')) ?? [];
  const path = join(folder, `${name}.${kind}`);
  const required = text.replace(/^import .* \/\/ or: (.*)$/m, '$1');
  expect(required).toMatch(/^const \{ \w+ \} = require\(/);
  writeFileSync(path, (kind === 'mjs' ? text : required).replace(URL_SHOWN, live.baseUrl));
  return path;
}

function outsideNodes(): readonly string[] {
  const folders = (process.env['PATH'] ?? '').split(':').filter((each) => !each.includes('node_modules'));
  return folders.map((each) => join(each, 'node')).filter((path) => versionOf(path) !== '');
}

function versionOf(node: string): string {
  try {
    return execFileSync(node, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}
