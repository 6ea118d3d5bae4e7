// Exits with one sentence if Node is too old. Every program must import this module first, because older versions of Node crash without a
// message when better-sqlite3 is loaded.
import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { EXIT_CONFIG } from './exit.ts';

const { engines } = createRequire(import.meta.url)('#package') as { readonly engines: { readonly node: string } };
const required = engines.node.replace('>=', '');
const { node: running } = process.versions;

if (isOlder(running, required)) {
  writeSync(process.stderr.fd, `Node ${required} or later is required, and this is Node ${running}.\n`);
  process.exit(EXIT_CONFIG);
}

function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [minMajor = 0, minMinor = 0] = than.split('.').map(Number);
  return major < minMajor || (major === minMajor && minor < minMinor);
}
