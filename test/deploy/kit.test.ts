// The image, the systemd unit and the compose file start the service like `npm start`, from existing files and settings.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { EXIT } from '../../src/cli/output.ts';
import { VARIABLES as CLI_VARIABLES } from '../../src/cli/variables.ts';
import { watchCommand } from '../../src/cli/watch-command.ts';
import { readConfig, VARIABLES } from '../../src/config.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { ROOT, requireInstalled } from '../kit/programs.ts';
import { run } from '../kit/service.ts';
import { runService } from '../kit/service-process.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const [DOCKERFILE, COMPOSE, UNIT, SETTINGS] = [
  'Dockerfile',
  'compose.yaml',
  'chambers.service',
  'chambers.env.example',
].map((name) => readFileSync(join(ROOT, 'deploy', name), 'utf8')) as [string, string, string, string];
/** The command that starts the service. */
const START = 'deploy/start.sh';

it('npm start runs the script', () => {
  expect(PACKAGE.scripts.start).toBe(`exec sh ${START}`);
});

describe('the Dockerfile', () => {
  const instructions = DOCKERFILE.replaceAll('\\\n', ' ').split('\n');
  const allOf = (name: string) => instructions.filter((line) => line.startsWith(`${name} `));
  const last = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')));
  const commandIn = (pattern: RegExp): readonly string[] => JSON.parse(pattern.exec(last.join('\n'))?.[1] ?? '');

  it('the Dockerfile copies only existing files that its ignore file admits', () => {
    const ignored = readFileSync(join(ROOT, 'deploy/Dockerfile.dockerignore'), 'utf8').split('\n');
    const copied = allOf('COPY').filter((line) => !line.includes('--from='));
    const sources = copied.flatMap((line) => line.split(' ').slice(1, -1));
    expect(sources.length).toBeGreaterThan(0);
    for (const source of sources) {
      expect(existsSync(join(ROOT, source)), source).toBe(true);
      expect(
        ignored.some((line) => [`!${source.split('/')[0]}`, `!${source}`].includes(line)),
        source,
      ).toBe(true);
    }
  });

  it('the Dockerfile copies everything that the package has, except documents and build output', () => {
    const isCopied = (file: string) => !/^!|^(dist|deploy)$|\.(md|schema\.json)$/.test(file);
    const files: readonly string[] = PACKAGE.files.filter(isCopied);
    for (const file of files) expect(last).toContain(`COPY ${file} ${file}`);
  });

  it('the Dockerfile runs existing npm scripts', () => {
    const scripts = [...DOCKERFILE.matchAll(/npm run (\S+)/g)].map(([, script = '']) => script);
    expect(scripts.length).toBeGreaterThan(0);
    for (const script of scripts) expect(PACKAGE.scripts).toHaveProperty(script);
  });

  it('the image has no development dependencies and does not run as root', () => {
    expect(last.slice(0, 2)).toEqual(['FROM node:24-bookworm-slim', 'WORKDIR /app']);
    expect(last).toContain('COPY --from=dependencies /app/node_modules node_modules');
    expect(DOCKERFILE).toMatch(/AS dependencies\n(?:.*\n)+?RUN npm ci .*--omit=dev/);
    expect(last).toContain('USER node');
    expect(last).toContain('VOLUME /data');
  });

  it('the image starts the service like npm start', () => {
    expect(commandIn(/^CMD (.*)$/m)).toEqual([START]);
  });

  it('the image’s health check passes for a ready service, and fails without one', async () => {
    const [program = '', ...words] = commandIn(/HEALTHCHECK .* CMD (.*)$/m);
    expect(program).toBe('node');
    const { url } = await run();
    const check = async (port: string) => {
      const child = spawn(process.execPath, words, { env: { PORT: port }, stdio: 'inherit' });
      return (await once(child, 'close'))[0];
    };
    expect(await check(new URL(url).port)).toBe(0);
    expect(await check(String(await freePort()))).toBe(1);
  });
});

function requireValid(skip: TestContext['skip'], name: string, unit: string): void {
  requireInstalled(skip, 'systemd-analyze');
  const file = join(temporaryFolder(), name);
  writeFileSync(file, unit.replaceAll('/opt/chambers/', ROOT).replaceAll('/usr/bin/node', process.execPath));
  const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  expect(verified).toMatchObject({ status: 0, stderr: expect.not.stringContaining(file) });
  const EXPOSURE_TENTHS_MAX = 20;
  const words = ['security', '--offline=true', `--threshold=${EXPOSURE_TENTHS_MAX}`, file];
  execFileSync('systemd-analyze', words, { stdio: 'pipe' });
}

describe('the systemd unit', () => {
  it('the unit starts the service like npm start', () => {
    expect(UNIT).toContain(`\nExecStart=/opt/chambers/${START}\n`);
  });

  it('the unit sets only variables of the service', () => {
    const names = [...UNIT.matchAll(/^Environment=(\w+)=/gm)].map(([, name = '']) => name);
    expect(names).toEqual(['NODE_ENV', 'DATABASE_PATH', 'SERVICE_KEY_FILE', 'BACKUP_STAMP_FILE']);
  });

  it('the unit does not restart a service whose configuration is invalid', async () => {
    const { exited } = await runService({ PORT: 'x' });
    expect(UNIT).toContain(`\nRestartPreventExitStatus=${(await exited).code}\n`);
  });

  it('the unit is valid and sandboxed', ({ skip }) => requireValid(skip, 'chambers.service', UNIT));
});

it('the unit of an agent uses existing options and variables, and is valid and sandboxed', ({ skip }) => {
  const unit = readFileSync(join(ROOT, 'deploy/chambers-watch.service'), 'utf8');
  const [, words = ''] =
    /^ExecStart=\/usr\/bin\/node \/opt\/chambers\/dist\/src\/cli\.js watch (.*)$/m.exec(unit) ?? [];
  const options = Object.keys(watchCommand.options ?? {}).map((option) => option.split(' ')[0]);
  for (const word of words.split(' ')) expect(options).toContain(word.split('=')[0]);
  const [, name = ''] = /^Environment=(\w+)=/m.exec(unit) ?? [];
  expect(CLI_VARIABLES).toHaveProperty(name);
  expect(unit).toContain(`\nRestartPreventExitStatus=${EXIT.usage} ${EXIT.authentication}\n`);
  requireValid(skip, 'chambers-watch.service', unit);
});

it('the backup unit runs existing commands on the service’s database', () => {
  const unit = readFileSync(join(ROOT, 'deploy/chambers-backup.service'), 'utf8');
  const commands = [...unit.matchAll(/dist\/src\/cli\.js (\w+)/g)].map(([, name]) => name);
  expect(commands).toEqual(['backup', 'fsck']);
  expect(unit).toContain(/^Environment=DATABASE_PATH=(.*)$/m.exec(UNIT)?.[1]);
  // A backup counts only if it was checked.
  const stamp = /^Environment=BACKUP_STAMP_FILE=(.*)$/m.exec(UNIT)?.[1];
  expect(unit.indexOf(`touch ${stamp};`)).toBeGreaterThan(unit.indexOf('cli.js fsck'));
});

describe('the settings', () => {
  const settings = Object.fromEntries([...SETTINGS.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
  const MADE = {
    CHAMBER_REGISTRY_ADDRESS: `0x${'11'.repeat(20)}`,
    IDEA_FACTORY_ADDRESS: `0x${'22'.repeat(20)}`,
    RELAYER_PRIVATE_KEY: `0x${'33'.repeat(32)}`,
    // The unit and the image name this file.
    SERVICE_KEY_FILE: '/var/lib/chambers/service-keys.json',
  };

  it('the settings file has variables of the service, and is valid once the addresses and the key are filled in', () => {
    for (const name of Object.keys(settings)) expect(VARIABLES).toHaveProperty(name);
    expect(readConfig({ ...settings, ...MADE })).toMatchObject({ NODE_ENV: 'production', METRICS_PORT: 9464 });
    expect(() => readConfig(settings)).toThrow(/RELAYER_PRIVATE_KEY: is needed/);
  });

  it('the settings of the compose file are variables of the service', () => {
    const [, block = ''] = /^ {2}chambers:\n([\s\S]*?)\n\n/m.exec(COMPOSE) ?? [];
    const [, environment = ''] = /environment:\n((?: {6}.*\n)+)/.exec(block) ?? [];
    const names = [...environment.matchAll(/^ {6}([A-Z_]+): /gm)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(VARIABLES).toHaveProperty(name);
  });
});

it('the compose file names existing files', () => {
  const mounted = [...COMPOSE.matchAll(/- \.\/(\S+?):/g)].map(([, name = '']) => name);
  expect(mounted).toEqual(['Caddyfile']);
  for (const name of mounted) expect(existsSync(join(ROOT, 'deploy', name))).toBe(true);
  expect(COMPOSE).toContain('dockerfile: deploy/Dockerfile');
});

it('scripts are executable', () => {
  const scripts = globSync('deploy/*.sh', { cwd: ROOT });
  expect(scripts.length).toBeGreaterThan(0);
  for (const script of scripts) expect(statSync(join(ROOT, script)).mode & 0o111).toBe(0o111);
});
