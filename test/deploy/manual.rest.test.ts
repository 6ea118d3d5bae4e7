// The operator's manual works when pasted: from an empty folder to a token behind Caddy, with a new relayer key and a backup.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { VARIABLES } from '../../src/config.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { readQuorumSettings } from '../../src/relayer/quorum-settings.ts';
import { ROOT, requireInstalled } from '../kit/programs.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';

const MANUAL = readFileSync(join(ROOT, 'deploy/README.md'), 'utf8');
const [, REHEARSAL = ''] = /^## Rehearse on one machine\n([\s\S]*?)^## /m.exec(MANUAL) ?? [];
const SLOW = { timeout: 240_000 };

/** Replaces npm, npx and bin/chambers with the installed Anvil and the sources of the service and the command line. */
const PROGRAMS = `
set -eum
trap 'for job in $(jobs -p); do kill -KILL -- "-$job" || true; done' EXIT
trap 'exit 1' TERM
chambers() { "$NODE" src/cli.ts "$@"; }
npx() { case $1 in anvil) shift; node_modules/.bin/anvil "$@" ;; esac }
npm() { case $1 in start) exec "$NODE" src/main.ts ;; esac }
`;

it(
  'the manual’s rehearsal ends with a token, a verified chamber, a new relayer and a sound backup',
  SLOW,
  async ({ skip }) => {
    requireInstalled(skip, 'bash', 'curl', 'caddy');
    const folder = temporaryFolder();
    const { exitCode, output } = await paste(await onFreePorts(commandsOf(REHEARSAL)), folder);
    expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
    expect(output).toMatch(/"mode":"production",.*"chain":"31337"/);
    expect(output).toMatch(/^faults +0$/m);
    expect(output).toMatch(/\b0 broken\b/);
    expect(output).toMatch(/relayer +0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC/);
  },
);

it('as-service.sh runs commands like the unit runs the service', () => {
  const read = (name: string) => readFileSync(join(ROOT, 'deploy', name), 'utf8');
  const unit = read('chambers.service');
  const script = read('as-service.sh');
  const settings = ['Environment', 'EnvironmentFile', 'DynamicUser', 'StateDirectory', 'WorkingDirectory', 'UMask'];
  const ofUnit = [...unit.matchAll(/^(\w+)=(.*)$/gm)].filter(([, name = '']) => settings.includes(name));
  expect(ofUnit.length).toBeGreaterThan(settings.length);
  for (const [line, name, value] of ofUnit)
    expect(script).toContain(name === 'Environment' ? `--setenv=${value}` : `--property=${line}`);
  // A dynamic user has the name of its unit.
  expect(script).toContain('--property=User=chambers');
});

it('the sample for CONTRACTS_FILE is valid', () => {
  expect(Object.keys(readQuorumSettings(join(ROOT, 'deploy/quorum.example.json')))).toContain('bps');
});

/** A placeholder, an error code, and a variable of Node's. */
const OTHERS = ['NEW_ADDRESS', 'FORUM_ERR_TOO_LARGE', 'NODE_EXTRA_CA_CERTS'];

it('the manual names only variables of the service', () => {
  const named = [...MANUAL.matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(0);
  const others = named.filter((name) => !(name in VARIABLES) && !OTHERS.includes(name));
  expect(others).toEqual([]);
});

it('the messages under troubleshooting are messages of the service', () => {
  const [, section = ''] = /^## Troubleshooting\n([\s\S]*)/m.exec(MANUAL) ?? [];
  const rows = [...section.matchAll(/^\| (?:\d{3} )?`([^`]+)`/gm)].map(([, message = '']) => message);
  expect(rows.length).toBeGreaterThan(5);
  const sources = globSync('src/**/*.ts', { cwd: ROOT }).map((path) => readFileSync(join(ROOT, path), 'utf8'));
  // Names and numbers differ between the fixed parts of a message.
  const parts = rows
    .flatMap((message) => message.split(/…|\bN\b|\bM\b|HOST:PORT|\b[A-Z_]+:/))
    .map((part) => part.replace(/^[\s:]+|\s+$/g, ''));
  const unknown = parts.filter((part) => part.length > 4 && !sources.some((source) => source.includes(part)));
  expect(unknown).toEqual([]);
});

function commandsOf(section: string): string {
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block).join('');
}

/** Other tests, or a service on the machine, may use the manual's ports. */
async function onFreePorts(commands: string): Promise<string> {
  let text = commands;
  for (const shown of ['8545', '8787', '8080', '9464']) {
    if (!text.includes(shown)) throw new Error(`the rehearsal does not use port ${shown}`);
    text = text.replaceAll(shown, String(await freePort()));
  }
  return text;
}

async function paste(commands: string, folder: string) {
  const [, port = ''] = /http:\/\/127\.0\.0\.1:(\d+)\/ready/.exec(commands) ?? [];
  const script = join(folder, 'rehearsal.sh');
  writeFileSync(script, PROGRAMS + commands.replaceAll(/\bdata\b/g, folder));
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  const child = spawn('bash', [script], {
    cwd: ROOT,
    env: {
      PATH,
      NODE_COMPILE_CACHE,
      HOME: folder,
      NODE: process.execPath,
      NO_COLOR: '1',
      PORT: port,
      UPSTREAM: `127.0.0.1:${port}`,
      DATABASE_PATH: join(folder, 'chambers.db'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  atEnd(async () => {
    child.kill('SIGTERM');
    await closed;
  });
  const [[exitCode], ...texts] = await Promise.all([closed, text(child.stdout), text(child.stderr)]);
  return { exitCode, output: texts.join('') };
}
