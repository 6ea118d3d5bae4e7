// Builds the npm packages chambers-client and chambers-audit into dist/packages, from the service's compiled sources. The client's only
// dependency is `ws`; all other libraries are bundled, because they are only ES modules and require() must work. Run by `npm run build`.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { type RolldownOutput, rolldown } from 'rolldown';
import { skillText } from '../docs/agent-texts.ts';

const SOURCES = dirname(import.meta.dirname);
const ROOT = join(SOURCES, '../..');
const PACKAGES = join(ROOT, 'dist/packages');
/** A keccak256 implementation without WebAssembly, which would be most of the client's size and which Workers don't compile. */
const PLAIN_KECCAK = join(ROOT, 'src/page/browser/platform.ts');

/** The example URL in the skills. */
const BASE_URL = 'http://127.0.0.1:8787';

const FORMATS = ['esm', 'cjs'] as const;
const ENGINES = { node: '>=20.16' };

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
}
const { version, license, dependencies } = readJson<Manifest>(join(ROOT, 'package.json'));
/** Overrides the package's own package.json in the folder cjs. */
const CJS_MANIFEST = { type: 'commonjs', sideEffects: false };

rmSync(PACKAGES, { recursive: true, force: true });
await buildClient();
await buildAuditor();

async function buildClient(): Promise<void> {
  const folder = createPackage('chambers-client', {
    description: 'Agents and readers of a Chamber Coordination Service, for Node, browsers, Deno, Bun and Workers.',
    engines: ENGINES,
    sideEffects: false,
    dependencies: { ws: dependencies['ws'] },
    ...entryPoints('client/index'),
  });
  writeSkill(
    'chambers-client',
    'With this package: `npm install chambers-client`; the README.md next to this file begins with a first move. `agent.todos()` is the loop below, `agent.commit()` hashes and stores what `agent.reveal()` needs, and `forum.outcome()` is what to report.',
  );
  await bundle(folder, 'client/index', { external: ['ws'], alias: { 'hash-wasm': PLAIN_KECCAK } });
}

async function buildAuditor(): Promise<void> {
  const folder = createPackage('chambers-audit', {
    description: 'Checks the chambers of a Chamber Coordination Service from their lines alone.',
    engines: ENGINES,
    sideEffects: ['./esm/command.js'],
    bin: { 'chambers-audit': './esm/command.js' },
    // version.ts and require-node.ts import it.
    imports: { '#package': './package.json' },
    ...entryPoints('packages/chambers-audit/index'),
  });
  writeSkill(
    'chambers-audit',
    `With this package: \`npx --no chambers-audit ${BASE_URL}\` checks every chamber from its lines alone, \`--chamber=ID\` one of them. Exit code 0: every check passed; 3: a check failed, and the report names the events; 4: the lines leave a question open that an option must decide.`,
  );
  await bundle(folder, 'packages/chambers-audit/index', {});
  await bundle(folder, 'packages/chambers-audit/command', {}, ['esm']);
}

function createPackage(name: string, manifest: object): string {
  const folder = join(PACKAGES, name);
  mkdirSync(folder, { recursive: true });
  writeJson(join(folder, 'package.json'), { name, version, license, type: 'module', ...manifest });
  cpSync(join(ROOT, 'src/packages', name, 'README.md'), join(folder, 'README.md'));
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  return folder;
}

function writeSkill(name: string, own: string): void {
  const note = `The URLs are for a service on this machine: use your service's base URL instead.`;
  writeFileSync(join(PACKAGES, name, 'SKILL.md'), skillText({ baseUrl: BASE_URL, name, own: `${own} ${note}` }));
}

/** Each format has its own folder with types, because TypeScript derives a module's format from its location. */
function entryPoints(entry: string) {
  const name = basename(entry);
  const of = (format: (typeof FORMATS)[number]) => ({
    types: `./${format}/types/src/${entry}.d.ts`,
    default: `./${format}/${name}.js`,
  });
  return {
    main: of('cjs').default,
    module: of('esm').default,
    types: of('esm').types,
    exports: { '.': { import: of('esm'), require: of('cjs') }, './package.json': './package.json' },
  };
}

interface BundleOptions {
  readonly external?: string[];
  readonly alias?: Record<string, string>;
}

async function bundle(
  folder: string,
  entry: string,
  { external = [], alias = {} }: BundleOptions,
  formats: readonly (typeof FORMATS)[number][] = FORMATS,
): Promise<void> {
  const build = await rolldown({
    input: join(SOURCES, `${entry}.js`),
    platform: external.length > 0 ? 'neutral' : 'node',
    resolve: { alias, mainFields: ['module', 'main'] },
    external,
    onLog: (_, { message }) => {
      throw new Error(message);
    },
  });
  for (const format of formats) {
    const { output } = await build.generate({ format, codeSplitting: false });
    mkdirSync(join(folder, format), { recursive: true });
    if (format === 'cjs') writeJson(join(folder, format, 'package.json'), CJS_MANIFEST);
    for (const part of output) if (part.type === 'chunk') writeFileSync(join(folder, format, part.fileName), part.code);
    copyTypes(`${entry}.d.ts`, join(folder, format, 'types'));
    writeFileSync(join(folder, 'THIRD-PARTY.txt'), notices(output));
  }
}

/** Copies the declaration file and all its imports, keeping their paths. */
function copyTypes(entry: string, folder: string): void {
  const pending = [join(SOURCES, entry)];
  for (const path of pending) {
    const text = readFileSync(path, 'utf8');
    const copy = join(folder, relative(dirname(SOURCES), path));
    mkdirSync(dirname(copy), { recursive: true });
    writeFileSync(copy, text.replace(/(['"]\.{1,2}\/[^'"]+)\.ts(['"])/g, '$1.js$2'));
    for (const [, target = ''] of text.matchAll(/['"](\.{1,2}\/[^'"]+)\.ts['"]/g)) {
      const next = join(dirname(path), `${target}.d.ts`);
      if (!pending.includes(next)) pending.push(next);
    }
  }
}

function notices(output: RolldownOutput['output']): string {
  const modules = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []));
  const folders = new Set(modules.flatMap((id) => id.match(/.*\/node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []));
  return [...folders].sort().map(noticeOf).join('\n\n');
}

function noticeOf(folder: string): string {
  const { name, version, license } = readJson<Manifest & { readonly name: string }>(join(folder, 'package.json'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file === undefined ? license : readFileSync(join(folder, file), 'utf8').trim();
  return `${name} ${version}\n\n${text}`;
}

function readJson<Value>(path: string): Value {
  return JSON.parse(readFileSync(path, 'utf8')) as Value;
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}
