// `chambers init` through a pipe, at a terminal and with options only: its configuration starts a server that acts as the agent.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { privateKeyToAddress } from 'viem/accounts';
import { beforeEach, describe, expect, it } from 'vitest';
import { sharedLiveService, WALLET } from '../client/live-service.ts';
import { CLI, requireInstalled } from '../kit/programs.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { startServer } from '../mcp/seat-process.ts';
import { run } from './run.ts';

const SLOW = { timeout: 120_000 };
const EMAIL = 'ada@example.org';

const live = sharedLiveService();

let folder: string;
let keyFile: string;
beforeEach(() => {
  folder = temporaryFolder();
  keyFile = join(folder, 'ada.json');
});

/** Runs the program with these answers on standard input. */
async function answered(program: string, words: readonly string[], answers: readonly string[]) {
  const { PATH } = process.env;
  const child = spawn(program, words, { cwd: folder, env: { PATH, HOME: folder, ...live.sharedTimeEnv } });
  child.stdin.end(answers.map((answer) => `${answer}\n`).join(''));
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { exitCode: await exited, out, err };
}

const init = (answers: readonly string[], ...options: readonly string[]) =>
  answered(process.execPath, [CLI, 'init', ...options], answers);

/** Starts the server from a configuration, as a host does, and returns the result of `whoami`. */
async function whoami(config: string): Promise<{ readonly did: string; readonly walletAddress: string }> {
  const seat = await startServer('modern', { ...JSON.parse(config).mcpServers.chambers, env: live.sharedTimeEnv });
  return await seat.call('whoami');
}

describe('chambers init', SLOW, () => {
  it('init prompts for URL, key, wallet and label, repeats a prompt after an invalid answer, and prints a working configuration', async () => {
    const wrong = [
      'nowhere',
      'http://127.0.0.1:9',
      live.baseUrl,
      folder,
      keyFile,
      '0x12',
      'nowhere',
      '',
      'nobody',
      EMAIL,
      'Ada',
    ];
    const { exitCode, out, err } = await init(wrong);
    expect(exitCode, err).toBe(0);
    for (const problem of [
      'the base URL must be like',
      'Is the service running?',
      'illegal operation on a directory',
      'must be an EVM address: 0x and 40 hex digits',
      'nowhere not found',
      'must be an e-mail address',
    ])
      expect(err).toContain(problem);
    for (const fallback of ['[http://127.0.0.1:8787]', '/.chambers/agent.json]', `[${keyFile}.wallet]`])
      expect(err).toContain(fallback);
    const { did } = JSON.parse(readFileSync(keyFile, 'utf8'));
    const walletKey = readFileSync(`${keyFile}.wallet`, 'utf8').trim() as `0x${string}`;
    expect([statSync(keyFile).mode & 0o777, statSync(`${keyFile}.wallet`).mode & 0o777]).toEqual([0o600, 0o600]);
    expect(out).not.toContain(walletKey.slice(2));
    expect(await whoami(out)).toMatchObject({
      ...{ did, walletAddress: privateKeyToAddress(walletKey), walletProven: true },
    });
    expect(await (await fetch(`${live.baseUrl}/agents/${did}`)).json()).toMatchObject({ label: 'Ada' });
  });

  it('init works at a terminal', async ({ skip }) => {
    requireInstalled(skip, 'script');
    const command = `'${process.execPath}' '${CLI}' init --out=mcp.json`;
    const { out } = await answered(
      'script',
      ['-qec', command, '/dev/null'],
      [live.baseUrl, keyFile, WALLET, EMAIL, ''],
    );
    expect(out).toContain('URL of the service [');
    const { did } = JSON.parse(readFileSync(keyFile, 'utf8'));
    const config = readFileSync(join(folder, 'mcp.json'), 'utf8');
    expect(await whoami(config)).toMatchObject({ did, walletAddress: WALLET, walletProven: false });
  });

  it('init does not prompt if options set everything, and a second run changes nothing', async () => {
    const options = [`--url=${live.baseUrl}`, `--key=${keyFile}`, '--max-open=1', '--read-only'];
    const first = await init([], ...options, '--yes', `--email=${EMAIL}`);
    expect(first).toMatchObject({ exitCode: 0, err: expect.not.stringContaining(']:') });
    expect(JSON.parse(first.out).mcpServers.chambers.args.slice(1)).toEqual([
      'mcp',
      ...options.slice(0, 2),
      '--read-only',
      '--max-open=1',
    ]);
    const key = readFileSync(keyFile, 'utf8');
    expect(await init([], ...options)).toMatchObject({ exitCode: 0, out: first.out });
    expect(readFileSync(keyFile, 'utf8')).toBe(key);
  });

  it.each([
    ['a missing e-mail address', ['--yes', '--wallet', WALLET], 2, 'set --email'],
    [
      'a wallet with a wrong checksum',
      ['--wallet', `0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed`, '--yes'],
      2,
      'checksum',
    ],
    ['a key in place of a file', ['--wallet', '11'.repeat(32), '--yes'], 2, 'the path of a file, not the key'],
  ])('init reports the problem with %s', async (_, options, exitCode, problem) => {
    const ran = await run(['init', `--url=${live.baseUrl}`, `--key=${keyFile}`, ...options]);
    expect(ran).toMatchObject({ exitCode, out: '', err: expect.stringContaining(problem) });
  });

  it('init reports a missing answer when its input ends', async () => {
    const ran = await init([], `--url=${live.baseUrl}`, `--key=${keyFile}`, '--wallet', WALLET);
    expect(ran).toMatchObject({ exitCode: 2, out: '', err: expect.stringContaining('no answer: set --email') });
  });

  it('init does not change an existing file', async () => {
    const taken = join(folder, 'taken.json');
    writeFileSync(taken, '{}');
    const ran = await run(['init', `--url=${live.baseUrl}`, `--key=${keyFile}`, '--yes', '--out', taken]);
    expect(ran).toMatchObject({ exitCode: 5, out: '', err: expect.stringContaining('already exists') });
    expect(readFileSync(taken, 'utf8')).toBe('{}');
  });

  it('init replaces a configuration on request', async () => {
    const out = join(folder, 'replaced.json');
    writeFileSync(out, '{}');
    const options = ['--wallet', WALLET, '--email', EMAIL, '--out', out, '--yes', '--force'];
    const ran = await run(['init', `--url=${live.baseUrl}`, `--key=${keyFile}`, ...options]);
    expect(ran).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(readFileSync(out, 'utf8'))).toHaveProperty('mcpServers');
  });

  it('init does not change the wallet of a registered agent', async () => {
    const words = ['init', `--url=${live.baseUrl}`, `--key=${keyFile}`, `--email=${EMAIL}`, '--yes'];
    await run([...words, `--wallet=${WALLET}`]);
    const other = await run([...words, `--wallet=0x${'22'.repeat(20)}`]);
    expect(other).toMatchObject({ exitCode: 5, err: expect.stringContaining('chambers agent register') });
    expect(existsSync(`${keyFile}.wallet`)).toBe(false);
  });
});
