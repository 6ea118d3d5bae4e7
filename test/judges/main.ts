// `npm run judges`: runs third-party programs against the service, in the tests of the project `judges`, or only the named tests.
// It installs the required packages into a temporary folder, because `npm ci` does not. `-- --folder FOLDER` keeps them for the
// next run.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Judge, PACKAGES } from './installed.ts';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { folder: { type: 'string' } } });
const folder = values.folder === undefined ? mkdtempSync(join(tmpdir(), 'judges-')) : resolve(values.folder);
const all = Object.keys(PACKAGES) as Judge[];
const chosen = positionals.length === 0 ? all : positionals.map(requireJudge);
try {
  for (const name of chosen) install(name);
  process.exitCode = judge();
} finally {
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

function requireJudge(name: string): Judge {
  const known = all.find((each) => each === name);
  if (known === undefined) throw new Error(`unknown judge ${name}; known: ${all.join(', ')}`);
  return known;
}

/** Each judge has its own folder, so that it can be installed alone. */
function install(name: Judge): void {
  const own = join(folder, name);
  if (existsSync(join(own, 'node_modules')) || Object.keys(PACKAGES[name]).length === 0) return;
  mkdirSync(own, { recursive: true });
  writeFileSync(
    join(own, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: PACKAGES[name] }),
  );
  const options = ['--prefix', own, '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  execFileSync('npm', ['install', '--loglevel=error', ...options], { cwd: own, stdio: 'inherit' });
}

/** Returns the exit code of the tests. */
function judge(): number {
  const files = chosen.map((name) => (name === 'prism' ? 'test/docs/journey' : `test/judges/${name}`));
  const words = ['vitest', 'run', '--config', 'test/vitest.config.ts', '--project', 'judges', ...files];
  const { status } = spawnSync('npx', words, { stdio: 'inherit', env: { ...process.env, JUDGES: folder } });
  return status ?? 1;
}
