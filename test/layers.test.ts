// The import rule: vocabulary ← crypto, tlog, projections ← moves ← log, keys, verifier ← forum ← edges ← service ← main ← cli.
// Imports point left only, and never in a circle.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PURE = ['vocabulary', 'crypto', 'tlog', 'projections', 'moves'];
const SPINE = [...PURE, 'log', 'forum'];

/** The layers that each layer may import besides itself, lowest first; single files such as src/config.ts are layers, too. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  vocabulary: [],
  process: [],
  // Writes files durably and atomically.
  files: [],
  crypto: ['vocabulary'],
  // The formats of the transparency log, for programs that publish, serve, mirror and audit it.
  tlog: ['vocabulary', 'crypto'],
  projections: ['vocabulary'],
  moves: ['vocabulary', 'crypto', 'projections'],
  connections: ['vocabulary'],
  reading: ['vocabulary'],
  log: ['vocabulary', 'crypto', 'tlog', 'projections', 'process', 'files'],
  keys: ['vocabulary', 'crypto', 'files'],
  verifier: ['vocabulary', 'crypto', 'keys'],
  config: ['vocabulary', 'crypto', 'connections', 'log'],
  diagnostics: ['vocabulary', 'config', 'process'],
  forum: [...PURE, 'log', 'process'],
  // HTML elements and content negotiation, for all rooms that serve pages.
  html: ['vocabulary'],
  // The edges never import each other, except that the documents describe the routes of http.
  http: [...SPINE, 'keys', 'html', 'connections', 'process', 'diagnostics', 'files'],
  docs: [...PURE, 'html', 'http'],
  stream: [...SPINE, 'connections', 'process'],
  relayer: [...SPINE, 'reading', 'process', 'diagnostics', 'files'],
  // A local Anvil with the reference contracts, for a service without RPC_URL.
  'dev-chain': ['vocabulary', 'relayer', 'process', 'diagnostics', 'files'],
  // Publishes the checkpoints of the log and asks witnesses for their cosignatures.
  publisher: [...PURE, 'keys', 'log', 'reading', 'process', 'diagnostics', 'files'],
  // Replaces the lines in the operator's list by stubs.
  withholding: [...SPINE, 'keys', 'files', 'process', 'diagnostics'],
  // Calls agents that are not connected.
  callbacks: [...SPINE, 'keys', 'process', 'diagnostics'],
  metrics: ['vocabulary', 'process'],
  // The client may run in another program: it shares format and rules with the service, but not the store.
  client: ['vocabulary', 'crypto', 'projections', 'process', 'reading', 'files'],
  audit: [...PURE, 'reading', 'process', 'verifier', 'files'],
  // Keeps a verified copy of a service's log.
  mirror: ['vocabulary', 'crypto', 'tlog', 'reading', 'process', 'files'],
  // A client of the service for models; a seat also runs the auditor for its model.
  mcp: [...PURE, 'client', 'reading', 'process', 'files', 'audit'],
  // The page's worker runs the auditor in the browser.
  page: [...SPINE, 'html', 'reading', 'audit'],
  service: [
    ...[...SPINE, 'keys', 'verifier', 'connections', 'config', 'process', 'diagnostics', 'files', 'html'],
    ...[
      'http',
      'docs',
      'stream',
      'relayer',
      'dev-chain',
      'publisher',
      'withholding',
      'callbacks',
      'metrics',
      'page',
      'mcp',
    ],
  ],
  // The service's program knows the configuration, the start and the process, but no internals.
  main: ['config', 'process', 'diagnostics', 'service', 'files'],
  // Examines what a service would start with, but starts nothing.
  doctor: ['config', 'process', 'http', 'reading', 'service'],
  // Clients play the demo's chambers on a service in a process of its own.
  demo: ['vocabulary', 'crypto', 'projections', 'client', 'reading', 'process'],
  // `chambers serve` runs main. The other commands are clients, the auditor, and operators' work on log and contracts.
  cli: [
    ...[...PURE, 'keys', 'log', 'config', 'process', 'http', 'relayer', 'publisher', 'reading', 'service'],
    ...['withholding', 'files', 'client', 'audit', 'mirror', 'mcp', 'demo', 'doctor', 'main'],
  ],
  // The npm packages publish parts of the program.
  packages: ['audit', 'cli', 'docs', 'process'],
};

interface Source {
  readonly path: string;
  readonly layer: string;
  readonly text: string;
  /** The imports as written. */
  readonly imports: readonly string[];
}

const IMPORT = /(?:from|import\()\s*'([^']+)'/g;

const sources: readonly Source[] = ['src', 'projections'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readSource(join(folder, name))),
);

function readSource(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8');
  return { path, layer: layerOf(path), text, imports: [...text.matchAll(IMPORT)].map((match) => match[1] ?? '') };
}

/** Returns the layer of a path: http for src/http/app.ts, config for src/config.ts, projections for projections/phase.ts. */
function layerOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return first === 'src' ? second.replace(/\.ts$/, '') : first;
}

function layersOfImports({ path, imports }: Source): readonly string[] {
  const inside = imports.filter((target) => target.startsWith('.'));
  return inside.map((target) => layerOf(relative(ROOT, join(ROOT, dirname(path), target))));
}

describe('the layers', () => {
  it('every source belongs to a known layer', () => {
    const layers = new Set(sources.map(({ layer }) => layer));
    expect([...layers].filter((layer) => MAY_IMPORT[layer] === undefined)).toEqual([]);
  });

  it.each(Object.entries(MAY_IMPORT))('the layer %s imports only layers to its left', (layer, allowed) => {
    const wrong = sources
      .filter((source) => source.layer === layer)
      .flatMap((source) => layersOfImports(source).map((target) => [source.path, target] as const))
      .filter(([, target]) => target !== layer && !allowed.includes(target));
    expect(wrong).toEqual([]);
  });
});

/** Returns the circles of imports between files, including imports of types. */
function circles(): readonly string[] {
  const targets = new Map(sources.map(({ path, imports }) => [path, imports.map((name) => join(dirname(path), name))]));
  const done = new Set<string>();
  const found: string[] = [];
  const follow = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
    if (done.has(path) || trail.includes(path)) return;
    for (const target of targets.get(path) ?? []) follow(target, [...trail, path]);
    done.add(path);
  };
  for (const { path } of sources) follow(path, []);
  return found;
}

/** Returns the packages that a file loads statically, except imports of types. */
function packagesLoadedWith(entry: string): ReadonlySet<string> {
  const texts = new Map(sources.map(({ path, text }) => [path, text]));
  const [seen, packages] = [new Set<string>(), new Set<string>()];
  const follow = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const [, name = ''] of (texts.get(path) ?? '').matchAll(/^(?:import|export) (?!type )[^;]*?'([^']+)';$/gm)) {
      if (name.startsWith('.')) follow(join(dirname(path), name));
      else packages.add(name.split('/')[0] ?? '');
    }
  };
  follow(entry);
  return packages;
}

describe('the service', () => {
  it('the service loads the packages of a chain or a database server only when it needs them', () => {
    const packages = packagesLoadedWith('src/main.ts');
    expect(packages).toContain('hono');
    expect(packages).not.toContain('viem');
    expect(packages).not.toContain('pg');
  });
});

describe('circular imports', () => {
  it('layers have no circular imports: each imports only those above it in the list', () => {
    const order = Object.keys(MAY_IMPORT);
    const wrong = Object.entries(MAY_IMPORT).flatMap(([layer, allowed]) =>
      allowed.filter((target) => order.indexOf(target) >= order.indexOf(layer)).map((target) => [layer, target]),
    );
    expect(wrong).toEqual([]);
  });

  it('files have no circular imports', () => {
    expect(circles()).toEqual([]);
  });
});

describe('pure code', () => {
  const pure = sources.filter(({ layer }) => PURE.includes(layer));

  it('pure code uses no clock, no randomness and no environment', () => {
    const IMPURE = /Date\.now|new Date\(\)|performance\.|Math\.random|randomBytes|setTimeout|setInterval|process\./;
    expect(pure.filter(({ text }) => IMPURE.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('projections import no packages', () => {
    const packages = pure.filter((source) => source.layer === 'projections').flatMap(({ imports }) => imports);
    expect(packages.filter((target) => !target.startsWith('.'))).toEqual([]);
  });

  it('pure code imports no Node modules', () => {
    expect(pure.flatMap(({ imports }) => imports).filter((target) => target.startsWith('node:'))).toEqual([]);
  });
});

describe('hashing a line', () => {
  it('lines are hashed only by the tree and by code that distinguishes stubs from other lines', () => {
    // The auditor verifies stubs with its own verifier.
    const MAY = ['src/crypto/merkle.ts', 'src/crypto/stub.ts', 'src/audit/line/leaf.ts', 'src/audit/line/originals.ts'];
    expect(
      sources.filter(({ path, text }) => /\bleafHash\(/.test(text) && !MAY.includes(path)).map(({ path }) => path),
    ).toEqual([]);
  });

  it('only rooms of the service hash lines without verifying stubs', () => {
    const SERVICE = ['log', 'forum', 'http', 'service', 'crypto'];
    const users = sources.filter(({ text }) => text.includes('storedLeaf')).map(({ layer }) => layer);
    expect(users.filter((layer) => !SERVICE.includes(layer))).toEqual([]);
  });
});

describe('every source', () => {
  it('only the entry points read the environment', () => {
    const readers = sources.filter(({ text }) => text.includes('process.env')).map(({ layer }) => layer);
    expect(new Set(readers)).toEqual(new Set(['main', 'cli', 'demo', 'process']));
  });

  it('only src/files replaces files and renames drafts', () => {
    const WRITES = /\b(rename|link|fsync|fdatasync)(Sync)?\(/;
    const writers = sources.filter(({ text }) => WRITES.test(text)).map(({ layer }) => layer);
    expect(new Set(writers)).toEqual(new Set(['files']));
  });

  // The linter detects a promise that a statement drops, but not one that the callback of a timer or a listener returns.
  it('callbacks start asynchronous work only with detach', () => {
    const CALLER = String.raw`\b(?:set(?:Timeout|Interval|Immediate)|queueMicrotask|nextTick|createServer|on|once|addEventListener)`;
    const RETURNED = new RegExp(
      String.raw`${CALLER}\((?:[^(),]+, )*(?:async\b|\([^()]*\) => (?:this\.)?(#?\w+)\()`,
      'g',
    );
    const wrong = sources.flatMap(({ path, text }) =>
      [...text.matchAll(RETURNED)]
        .filter(([, called]) => called === undefined || new RegExp(`async (?:function )?${called}\\(`).test(text))
        .map(([call]) => `${path}: ${call}`),
    );
    expect(wrong).toEqual([]);
  });

  it('every relative import names a file', () => {
    const inside = sources.flatMap(({ imports }) => imports).filter((target) => target.startsWith('.'));
    expect(inside.filter((target) => !target.endsWith('.ts'))).toEqual([]);
  });

  it('every source exports by name', () => {
    expect(sources.filter(({ text }) => /^export default/m.test(text)).map(({ path }) => path)).toEqual([]);
  });
});
