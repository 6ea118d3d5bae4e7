// Faults while a command runs: no data is lost, the error names the cause, and no stack trace is printed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { follow, START } from '../../src/client/events.ts';
import { StubReader } from '../../src/crypto/stub-reader.ts';
import { NO_PREVIOUS } from '../../src/vocabulary/values.ts';
import { newAgent, newChamber, sharedLiveService } from '../client/live-service.ts';
import { recordCommit } from '../kit/chambers.ts';
import { CLI } from '../kit/programs.ts';
import { listen, serve } from '../kit/serve.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { type Run, run } from './run.ts';

const PROCESS_MILLIS_MAX = 30_000;

const live = sharedLiveService();
let folder: string;
beforeAll(async () => {
  const agent = await newAgent(live);
  await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(1);
});
beforeEach(() => {
  folder = temporaryFolder();
});

const chambers = (...words: readonly string[]): Promise<Run> => run(words, { CHAMBERS_URL: live.baseUrl });

describe('an export', () => {
  it('export never replaces a file without --force', async () => {
    const out = join(folder, 'chamber.ndjson');
    writeFileSync(out, 'mine');
    const { exitCode, err } = await chambers('export', '1', `--out=${out}`);
    expect({ exitCode, err }).toMatchObject({ exitCode: 5, err: expect.stringContaining('already exists') });
    expect(readFileSync(out, 'utf8')).toBe('mine');
    expect(await chambers('export', '1', `--out=${out}`, '--force')).toMatchObject({ exitCode: 0, err: '' });
    expect(readFileSync(out, 'utf8').split('\n')).toHaveLength(3);
    expect(readdirSync(folder)).toEqual(['chamber.ndjson']);
  });

  it('a failed export leaves the file unchanged and creates no other file', async () => {
    const out = join(folder, 'chamber.ndjson');
    writeFileSync(out, 'mine');
    const [first = ''] = (await (await fetch(`${live.baseUrl}/chambers/1/events`)).text()).split('\n');
    const url = await serve((_request, answer) => answer.end(`${first}\n${first}\n`));
    const broken = await chambers('export', url, '1', `--out=${out}`, '--force');
    expect(broken).toMatchObject({ exitCode: 3, err: expect.stringContaining('the log is broken') });
    expect(await chambers('export', '99', `--out=${join(folder, 'new.ndjson')}`)).toMatchObject({ exitCode: 2 });
    expect(readFileSync(out, 'utf8')).toBe('mine');
    expect(readdirSync(folder)).toEqual(['chamber.ndjson']);
  });

  it.each([
    ['in a folder that does not exist', '/nowhere/1', 'cannot write “/nowhere/1”: its folder does not exist'],
    ['that is a device', '/dev/full', '/dev/full is not a regular file'],
    ['that is a folder', '/', '/ is not a regular file'],
    ['without a name', '', 'cannot write “”: its folder does not exist'],
  ])('an export to a file %s is an error', async (_, out, detail) => {
    const failed = await chambers('export', '1', `--out=${out}`, '--force');
    expect(failed).toMatchObject({ exitCode: 2, err: `usage: ${detail}` });
    if (out === '/') expect(await chambers('chamber', 'tail', '1', `--out=${out}`)).toMatchObject({ exitCode: 2 });
  });
});

describe('a tail', () => {
  it.each([[['--json']], [[]]])('tail %j reports that the event of its cursor does not exist', async (words) => {
    const { exitCode, err } = await chambers('chamber', 'tail', '1', '--after=99', ...words);
    expect({ exitCode, err }).toMatchObject({ exitCode: 2, err: expect.stringContaining('beyond the last event, 2') });
  });

  it('tail continues after an event of the service, and names the head if the cursor is beyond it', async () => {
    const agent = await newAgent(live);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    live.advance(86_400_000);
    const hash = `0x${'22'.repeat(32)}` as const;
    const payload = { chainId: 1, nonce: 0, txHash: hash, rawTransaction: hash };
    const fact = { type: 'relay.commit_submitted', payload } as const;
    await live.service.forum.submit({ operation: 'record', chamberId, fact });
    await recordCommit(live.service.forum, chamberId);
    const id = String(chamberId);
    const beyond = await chambers('chamber', 'tail', id, '--after=4', '--json');
    expect(beyond).toMatchObject({ exitCode: 2, err: expect.stringContaining('beyond the last event, 3') });

    const out = join(folder, 'chamber.ndjson');
    expect(await chambers('export', id, `--out=${out}`)).toMatchObject({ exitCode: 0 });
    const whole = readFileSync(out, 'utf8');
    writeFileSync(out, whole.split('\n').slice(0, 2).join('\n').concat('\n'));
    const child = start(['chamber', 'tail', id, `--out=${out}`, `--url=${live.baseUrl}`], 'pipe');
    await eventually(() => expect(readFileSync(out, 'utf8')).toBe(whole), PROCESS_MILLIS_MAX);
    child.kill('SIGINT');
    expect(await exitOf(child)).toBe(0);
  });

  it('a tail of all chambers checks its cursor before the first request', async () => {
    const { exitCode, err } = await chambers('tail', '--after=x');
    expect({ exitCode, err }).toEqual({ exitCode: 2, err: 'usage: --after must be CHAMBER:EVENT, e.g. 7:12, or 0' });
  });

  it('tail reports a damaged file and leaves it unchanged', async () => {
    const out = join(folder, 'chamber.ndjson');
    writeFileSync(out, '{"eventId":2}\n{"even');
    const { exitCode, err } = await chambers('chamber', 'tail', '1', `--out=${out}`);
    expect({ exitCode, err }).toEqual({
      exitCode: 3,
      err: `verification: ${out} is damaged: line 1 is not event 1 of the chamber`,
    });
    expect(readFileSync(out, 'utf8')).toBe('{"eventId":2}\n{"even');
  });

  it('tail reports a file of another log', async () => {
    const out = join(folder, 'chamber.ndjson');
    const rest = { chamberId: 1, type: 'other', ts: '2030-01-01T00:00:00.000Z', did: null, payload: {}, request: null };
    const other = JSON.stringify({ eventId: 1, prev: NO_PREVIOUS, ...rest });
    writeFileSync(out, `${other}\n`);
    const shorter = await chambers('chamber', 'tail', '1', `--out=${out}`);
    expect(shorter).toMatchObject({
      exitCode: 3,
      err: expect.stringContaining(`${out} is not the log of this chamber`),
    });
    let lines = `${other}\n`;
    const stubs = new StubReader(() => undefined);
    let cursor = follow(START, 1, other, { stubs });
    for (const eventId of [2, 3]) {
      const line = JSON.stringify({ eventId, prev: cursor.leaf, ...rest });
      cursor = follow(cursor, 1, line, { stubs });
      lines += `${line}\n`;
    }
    writeFileSync(out, lines);
    const longer = await chambers('chamber', 'tail', '1', `--out=${out}`);
    expect(longer).toMatchObject({ exitCode: 2, err: expect.stringContaining(`${out}: event 3 is beyond the last`) });
  });
});

describe('a process', { timeout: PROCESS_MILLIS_MAX }, () => {
  it('a command ends with one sentence if its output device is full', async () => {
    const full = openSync('/dev/full', 'w');
    const child = start(['--help'], full);
    closeSync(full);
    const [err, exitCode] = await Promise.all([errorOf(child), exitOf(child)]);
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: expect.stringMatching(/^failure: .*ENOSPC.*\n$/) });
  });

  it.each([[['chamber', 'tail', '1', '--json']], [['export', '1']]])(
    '%j ends silently when its reader closes the pipe',
    async (words) => {
      const child = start([...words, `--url=${live.baseUrl}`], 'pipe');
      child.stdout?.destroy();
      const [err, exitCode] = await Promise.all([errorOf(child), exitOf(child)]);
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
    },
  );

  it('an interrupted export leaves no files behind', async () => {
    const url = await serve(() => {});
    const child = start(['export', '1', `--out=${join(folder, 'chamber.ndjson')}`, `--url=${url}`], 'pipe');
    await eventually(() => expect(readdirSync(folder)).toHaveLength(1), PROCESS_MILLIS_MAX);
    child.kill('SIGINT');
    expect(await exitOf(child)).toBe(130);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('a move reports that it is waiting while its result is unknown, and ends on SIGINT', async () => {
    const key = join(folder, 'agent.json');
    await chambers('agent', 'new', `--key=${key}`);
    // This service responds, but closes every connection on which it gets a command.
    const url = await serve((request, response) => {
      if (request.method !== 'GET') return request.resume().once('end', () => request.socket.destroy());
      return response.writeHead(404, { 'content-type': 'application/json' }).end(NOT_FOUND);
    });
    const child = start(['move', 'join', '1', `--key=${key}`, `--url=${url}`, '--json'], 'pipe');
    const [notice] = (await once(child.stderr ?? child, 'data')) as [Buffer];
    expect(JSON.parse(notice.toString())).toEqual({ notice: expect.stringMatching(/No response yet.*Ctrl-C/) });
    child.kill('SIGINT');
    const [err, exitCode] = await Promise.all([errorOf(child), exitOf(child)]);
    expect(JSON.parse(err)).toMatchObject({
      error: 'unreachable',
      detail: expect.stringContaining('may have been'),
      exitCode,
    });
    expect(exitCode).toBe(6);
  });

  it('a move gives up after --patience, and stores a request that takes effect only once', async () => {
    const key = join(folder, 'agent.json');
    await chambers('agent', 'new', `--key=${key}`);
    let isAway = true;
    const signatures: unknown[] = [];
    const url = await serve((request, response) => {
      const answer = (status: number, body: string) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      if (request.method === 'GET') return answer(404, NOT_FOUND);
      signatures.push(request.headers['signature']);
      return request.resume().once('end', () => (isAway ? request.socket.destroy() : answer(200, '{"eventId":7}')));
    });
    const given = [`--key=${key}`, `--url=${url}`, '--json'];
    const { exitCode, err } = await chambers('move', 'pass', '1', '--patience=1s', ...given);
    const { detail, resend } = JSON.parse(err.split('\n').at(-1) ?? '') as Record<string, string>;
    expect({ exitCode, detail }).toEqual({
      exitCode: 6,
      detail: expect.stringContaining(`no result within 1s: the request may have been accepted`),
    });
    expect(detail).toContain(`chambers agent resend ${resend} --url=${url} --key=${key}`);
    expect(statSync(resend ?? '').mode & 0o077).toBe(0);
    const again = () => chambers('agent', 'resend', resend ?? '', ...given, '--patience=1s');
    expect(await again()).toMatchObject({ exitCode: 6, err: expect.stringContaining(`agent resend ${resend}`) });
    isAway = false;
    expect(await again()).toMatchObject({ exitCode: 0, out: expect.stringContaining('"eventId":7') });
    expect(new Set(signatures).size).toBe(1);
    expect(await again()).toMatchObject({ exitCode: 2, err: expect.stringContaining('not found') });
  });

  it('a move reports that an unreachable service accepted nothing', async () => {
    const key = join(folder, 'agent.json');
    await chambers('agent', 'new', `--key=${key}`);
    const server = createServer((_request, response) => response.end('[]'));
    const url = await listen(server);
    await new Promise((closed) => server.close(closed));
    const refused = await chambers('move', 'pass', '1', `--key=${key}`, `--url=${url}`, '--patience=1s');
    expect(refused).toMatchObject({
      exitCode: 6,
      err: expect.stringContaining('nothing was accepted: run the command'),
    });
  });
});

describe('a move that was not sent', () => {
  it('a move that was not sent is never reported as possibly accepted', async () => {
    const key = join(folder, 'agent.json');
    await chambers('agent', 'new', `--key=${key}`);
    let requests = 0;
    // This service accepts connections and never responds.
    const url = await serve(() => {
      requests++;
    });
    const child = start(['move', 'join', '1', `--key=${key}`, `--url=${url}`, '--json'], 'pipe');
    const [notice] = (await once(child.stderr ?? child, 'data')) as [Buffer];
    expect(JSON.parse(notice.toString())).toEqual({ notice: expect.stringMatching(/nothing has been sent/) });
    expect(requests).toBeGreaterThan(0);
    child.kill('SIGINT');
    const [err, exitCode] = await Promise.all([errorOf(child), exitOf(child)]);
    expect({ ...JSON.parse(err), exitCode }).toMatchObject({
      error: 'unreachable',
      detail: expect.stringContaining('nothing was sent'),
      exitCode: 6,
    });
  });
});

const NOT_FOUND = JSON.stringify({ error: 'FORUM_ERR_NOT_FOUND', detail: 'not found' });

function start(words: readonly string[], stdout: number | 'pipe'): ChildProcess {
  return spawn(process.execPath, [CLI, ...words], { stdio: ['ignore', stdout, 'pipe'] });
}

async function errorOf(child: ChildProcess): Promise<string> {
  return child.stderr === null ? '' : await text(child.stderr);
}

async function exitOf(child: ChildProcess): Promise<unknown> {
  const [exitCode] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode];
  return exitCode;
}
