// `npm run judges`: programs of others judge the service, in the tests of the project `judges`. They are some 500 packages, so they are
// installed into a temporary folder rather than by `npm ci`. `-- --folder FOLDER` keeps them there for the next run.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const JUDGES = {
  '@modelcontextprotocol/conformance': '0.2.0-alpha.12',
  '@stoplight/prism-cli': '5.14.2',
  '@stoplight/spectral-cli': '6.16.3',
  '@stoplight/spectral-owasp-ruleset': '2.0.1',
};

const { values, positionals } = parseArgs({ allowPositionals: true, options: { folder: { type: 'string' } } });
const folder = values.folder === undefined ? mkdtempSync(join(tmpdir(), 'judges-')) : resolve(values.folder);
try {
  install();
  process.exitCode = judge();
} finally {
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true });
}

function install(): void {
  const manifest = join(folder, 'package.json');
  if (existsSync(join(folder, 'node_modules'))) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(manifest, JSON.stringify({ private: true, dependencies: JUDGES }));
  const options = ['--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  execFileSync('npm', ['install', ...options], { cwd: folder, stdio: 'inherit' });
}

/** Returns the exit code of the tests. */
function judge(): number {
  const words = ['vitest', 'run', '--config', 'test/vitest.config.ts', '--project', 'judges', ...positionals];
  const { status } = spawnSync('npx', words, { stdio: 'inherit', env: { ...process.env, JUDGES: folder } });
  return status ?? 1;
}
