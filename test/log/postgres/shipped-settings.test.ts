// The systemd unit and the image on PostgreSQL: with their own settings and the manual's, the service starts in a read-only folder.
import { chmodSync, chownSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { run as runCommand } from '../../cli/run.ts';
import { ownDatabase } from '../../kit/postgres.ts';
import { ROOT } from '../../kit/programs.ts';
import { OTHER_USER, startShipped } from '../../kit/service-process.ts';
import { temporaryFolder } from '../../kit/temporary.ts';

const read = (name: string) => readFileSync(join(ROOT, 'deploy', name), 'utf8');
const [, MANUAL = ''] = /^## PostgreSQL in production\n([\s\S]*?)^## /m.exec(read('README.md')) ?? [];

/** Returns the variables in lines of `NAME=value`. */
function settingsIn(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}

/** Returns the manual's settings, with this database. */
function settingsOfManual(url: string): Readonly<Record<string, string>> {
  const [, block = ''] = /```\n(DATABASE_PATH=\n[\s\S]*?)```/.exec(MANUAL) ?? [];
  const settings = settingsIn(block);
  expect(Object.keys(settings)).toEqual(['DATABASE_PATH', 'DATABASE_URL', 'BACKUP_STAMP_FILE', 'HOST']);
  return { ...settings, DATABASE_URL: url, HOST: '127.0.0.1' };
}

const ENVIRONMENTS = {
  unit: settingsIn(read('chambers.service').replaceAll(/^Environment=/gm, '')),
  image: settingsIn((/^ENV (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '').replaceAll(' ', '\n')),
};

/** The package's folder, read-only for the service, as in the unit and the image. */
function packageFolder(): string {
  const folder = temporaryFolder();
  for (const name of ['dist', 'deploy', 'node_modules', 'package.json', 'fixtures'])
    symlinkSync(join(ROOT, name), join(folder, name));
  chmodSync(folder, 0o555);
  return folder;
}

it.each(Object.keys(ENVIRONMENTS) as (keyof typeof ENVIRONMENTS)[])(
  'the %s starts on PostgreSQL with the settings of the manual',
  { timeout: 60_000 },
  async (which) => {
    const state = temporaryFolder();
    chmodSync(state, 0o777);
    const environment = ENVIRONMENTS[which];
    expect(environment).toMatchObject({ NODE_ENV: 'production', DATABASE_PATH: expect.stringMatching(/^\/.*\.db$/) });
    const env = {
      ...environment,
      ...{ PUBLIC_URL: 'https://chambers.example.org', CHAIN: 'none', PORT: '0', HOST: '127.0.0.1' },
      ...settingsOfManual(await ownDatabase()),
      SERVICE_KEY_FILE: join(state, 'service-keys.json'),
    };
    expect(await runCommand(['admin', 'new-keys'], env)).toMatchObject({ exitCode: 0 });
    if (process.getuid?.() === 0) chownSync(env.SERVICE_KEY_FILE, OTHER_USER, OTHER_USER);
    const { url } = await startShipped(packageFolder(), env);
    expect(await (await fetch(`${url}/ready`)).json()).toEqual({ ready: true });
    expect(await runCommand(['doctor'], env)).toMatchObject({ exitCode: 0 });
  },
);

it('without the line that clears DATABASE_PATH, the error names the line to add', async () => {
  const env = { ...ENVIRONMENTS.unit, DATABASE_URL: await ownDatabase(), CHAIN: 'none' };
  const { exitCode, out } = await runCommand(['doctor'], env);
  expect({ exitCode, out }).toEqual({ exitCode: 78, out: expect.stringContaining('DATABASE_PATH= in the settings') });
});
