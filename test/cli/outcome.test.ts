// `chambers outcome` and `chambers audit --outcome` print what a chamber came to, in the very bytes of the service.
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

/** Chamber 1 is settled, its idea without a token; chamber 2 is in its lobby. */
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
  it('prints the bytes of the service', async () => {
    expect(await chambers('outcome', '1', '--json')).toEqual({ exitCode: 0, out: await outcomeOf(), err: '' });
  });

  it('prints a table for people', async () => {
    const { exitCode, out } = await chambers('outcome', '1');
    expect([exitCode, out.split('\n')[0]]).toEqual([0, 'Chamber 1: Räte 🏛']);
    expect(out).toContain('1 of 1 members committed, 1 revealed');
    expect(out).toMatch(/idea-1 +TEA +1 +1 +6000 +60\.0 % +none: no more tea +Tea/);
    expect(out).toMatch(/abstainedBps +4000/);
  });

  it('asks with --wait until the chamber is over', async () => {
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

  it('says what the chamber waits for, with exit code 5', async () => {
    const { exitCode, out, err } = await chambers('outcome', '2');
    expect([exitCode, out]).toEqual([5, '']);
    expect(err).toContain('chamber 2 waits for the end of the reveals');
  });
});

describe('chambers audit --outcome', () => {
  it('prints the same bytes from the lines alone', async () => {
    // No logged transaction explains the root of this chamber, which the audit says on standard error.
    expect(await chambers('audit', await exported(), '--outcome')).toMatchObject({
      exitCode: 4,
      out: await outcomeOf(),
      err: expect.stringContaining('Nothing is broken'),
    });
    const ofService = await chambers('audit', live.baseUrl, '--chamber=1', '--outcome');
    expect(ofService).toMatchObject({ out: await outcomeOf() });
  });

  it('prints nothing of lines that are broken', async () => {
    const path = await exported();
    await writeFile(path, (await readFile(path, 'utf8')).replace('"bps":6000', '"bps":7000'));
    const { exitCode, out, err } = await chambers('audit', path, '--outcome');
    expect([exitCode, out]).toEqual([3, '']);
    expect(err).toContain('was altered');
  });

  it.each([
    ['a chamber that is not over', ['--chamber=2'], 'chamber 2 waits for the end of the reveals'],
    ['all chambers of a service', [], '--outcome needs --chamber'],
  ])('is unusable for %s', async (_, words, problem) => {
    const { exitCode, out, err } = await chambers('audit', live.baseUrl, ...words, '--outcome');
    expect([exitCode, out]).toEqual([2, '']);
    expect(err).toContain(problem);
  });
});
