// `chambers outcome` and `chambers audit --outcome` print a chamber's result, byte for byte as the service does.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from '../client/live-service.ts';
import { recordCommit } from '../kit/chambers.ts';
import { CLI } from '../kit/programs.ts';
import { serve } from '../kit/serve.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import type { Run } from './run.ts';

const live = sharedLiveService();
beforeAll(playChamber);

/** Chamber 1 is settled, and its idea has no token; chamber 2 is in LOBBY. */
async function playChamber(): Promise<void> {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber({ ...newChamber(live.now()), name: 'Räte \u202e🏛' });
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await agent.propose(chamberId, { name: 'Tea', ticker: 'TEA' });
  live.advance(2 * PHASE_MILLIS);
  await agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 6_000 }]);
  live.advance(PHASE_MILLIS);
  await agent.reveal(chamberId);
  live.advance(PHASE_MILLIS);
  const { forum } = live.service;
  await recordCommit(forum, chamberId);
  const payload = { ideaId: 'idea-1', txHash: null, reason: 'no more tea' };
  await forum.submit({ operation: 'record', chamberId, fact: { type: 'idea.deploy_failed', payload } });
  await agent.createChamber(newChamber(live.now()));
}

/** Runs the command as a shell would, with standard output into a pipe. */
function chambers(...words: readonly string[]): Promise<Run> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...live.sharedTimeEnv, CHAMBERS_URL: live.baseUrl };
    execFile(process.execPath, [CLI, ...words], { env }, (error, out, err) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

const outcomeOf = async () => await (await fetch(`${live.baseUrl}/chambers/1/outcome`)).text();

async function exported(): Promise<string> {
  const path = join(temporaryFolder(), 'chamber.ndjson');
  await writeFile(path, await (await fetch(`${live.baseUrl}/chambers/1/events`)).text());
  return path;
}

describe('chambers outcome', () => {
  it('outcome --json prints the bytes of the service', async () => {
    expect(await chambers('outcome', '1', '--json')).toEqual({ exitCode: 0, out: await outcomeOf(), err: '' });
  });

  it('outcome prints a table for people', async () => {
    const { exitCode, out } = await chambers('outcome', '1');
    expect([exitCode, out.split('\n')[0]]).toEqual([0, 'Chamber 1: Räte 🏛']);
    expect(out).toContain('1 of 1 members committed, 1 revealed');
    expect(out).toMatch(/idea-1 +TEA +1 +1 +6000 +60\.0 % +none: no more tea +Tea/);
    expect(out).toMatch(/abstainedBps +4000/);
  });

  it('outcome --wait waits until the chamber is over', async () => {
    const text = await outcomeOf();
    let asked = 0;
    const url = await serve((_request, response) => {
      const isOver = asked++ > 0;
      response.writeHead(isOver ? 200 : 409, { 'content-type': 'application/json', 'retry-after': '1' });
      response.end(isOver ? text : JSON.stringify({ error: 'FORUM_ERR_CONFLICT', detail: 'chamber 1 waits' }));
    });
    expect(await chambers('outcome', '1', '--wait', '--json', `--url=${url}`)).toEqual({
      exitCode: 0,
      out: text,
      err: '',
    });
    expect(asked).toBe(2);
  });

  it('outcome prints what the chamber is waiting for, with exit code 5', async () => {
    const { exitCode, out, err } = await chambers('outcome', '2');
    expect([exitCode, out]).toEqual([5, '']);
    expect(err).toContain('chamber 2 is waiting for the end of the reveals');
  });
});

describe('chambers audit --outcome', () => {
  it('audit --outcome prints the same bytes from the lines alone', async () => {
    // No logged transaction explains the root of this chamber; the audit reports this on standard error.
    expect(await chambers('audit', await exported(), '--outcome')).toMatchObject({
      exitCode: 4,
      out: await outcomeOf(),
      err: expect.stringContaining('Nothing is broken'),
    });
    const ofService = await chambers('audit', live.baseUrl, '--chamber=1', '--outcome');
    expect(ofService).toMatchObject({ out: await outcomeOf() });
  });

  it('audit --outcome prints no outcome for broken lines', async () => {
    const path = await exported();
    await writeFile(path, (await readFile(path, 'utf8')).replace('"bps":6000', '"bps":7000'));
    const { exitCode, out, err } = await chambers('audit', path, '--outcome');
    expect([exitCode, out]).toEqual([3, '']);
    expect(err).toContain('was altered');
  });

  it.each([
    ['a chamber that is not over', ['--chamber=2'], 'chamber 2 is waiting for the end of the reveals'],
    ['all chambers of a service', [], '--outcome needs --chamber'],
  ])('audit --outcome can’t be used with %s', async (_, words, problem) => {
    const { exitCode, out, err } = await chambers('audit', live.baseUrl, ...words, '--outcome');
    expect([exitCode, out]).toEqual([2, '']);
    expect(err).toContain(problem);
  });
});
