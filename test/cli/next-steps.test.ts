// Command errors name the next step, with the same words regardless of their origin.
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { tlsHint } from '../../src/reading/tls-hint.ts';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from '../client/live-service.ts';
import { run as runService } from '../kit/service.ts';
import { type Run, run } from './run.ts';

const live = sharedLiveService();
let key: string;
beforeAll(async () => {
  key = join(live.folder, 'ada.json');
  await chambers('agent new');
});

const chambers = (words: string): Promise<Run> =>
  run(words.split(' '), { CHAMBERS_URL: live.baseUrl, CHAMBERS_KEY_FILE: key });

it('the error for an unregistered agent names the command that registers it', async () => {
  const { chamberId } = await (await newAgent(live)).createChamber(newChamber(live.now()));
  for (const words of ['todo', `move join ${chamberId}`]) {
    const { exitCode, err } = await chambers(words);
    expect(exitCode).toBe(4);
    expect(err).toContain(`this agent is not registered at ${live.baseUrl}: run chambers agent register --wallet=`);
  }
});

it.each([
  'chamber show 999',
  'chamber tail 999',
  'export 999',
  'play 999',
  'move join 999',
  'move commit 999 idea-1=1',
  'move debate 999 --comment=x --idea=TEA',
  'move reveal 999',
  'chamber wait 999 debate',
  'outcome 999',
])('a missing chamber is reported with the same words: %s', async (words) => {
  await chambers('agent register --wallet=0x1111111111111111111111111111111111111111 --email=a@example.org');
  const { exitCode, err } = await chambers(words);
  const list = `chambers chamber list --url=${live.baseUrl} lists the existing ones`;
  expect({ exitCode, err }).toEqual({
    exitCode: 2,
    err: `FORUM_ERR_NOT_FOUND: chamber 999 not found at ${live.baseUrl}; ${list}`,
  });
});

it('the error for an unknown idea lists the ideas with ids and tickers; the phase is checked first', async () => {
  await chambers('agent register --wallet=0x1111111111111111111111111111111111111111 --email=a@example.org');
  const other = await newAgent(live);
  const { chamberId } = await other.createChamber(newChamber(live.now()));
  await chambers(`move join ${chamberId}`);
  const next = '; chambers todo says what this agent can do now';
  const early = `FORUM_ERR_PHASE: expected phase ALLOCATE_COMMIT, actual phase LOBBY${next}`;
  expect(await chambers(`move commit ${chamberId} nothing=1`)).toMatchObject({ exitCode: 5, err: early });
  const reveal = `FORUM_ERR_PHASE: expected phase ALLOCATE_REVEAL, actual phase LOBBY${next}`;
  expect(await chambers(`move reveal ${chamberId}`)).toMatchObject({ exitCode: 5, err: reveal });
  live.advance(PHASE_MILLIS);
  await chambers(`move propose ${chamberId} --name=Tea --ticker=TEA`);
  live.advance(PHASE_MILLIS);
  expect(await chambers(`move debate ${chamberId} --comment=Green? --idea=tea`)).toMatchObject({ exitCode: 0 });
  const unknown = (idea: string) => {
    const detail = `idea ${idea} not found in chamber ${chamberId}: its ideas are idea-1 (TEA)`;
    return { exitCode: 2, err: `CLIENT_ERR_INPUT: ${detail}` };
  };
  for (const idea of ['MILK', 'idea-9'])
    expect(await chambers(`move debate ${chamberId} --comment=White? --idea=${idea}`)).toEqual(
      expect.objectContaining(unknown(idea)),
    );
  live.advance(PHASE_MILLIS);
  for (const idea of ['MILK', 'idea-9'])
    expect(await chambers(`move commit ${chamberId} ${idea}=1`)).toMatchObject(unknown(idea));
  expect((await chambers(`chamber show ${chamberId}`)).out).toContain('committed: 0 of 1');
  expect(await chambers(`move commit ${chamberId} TEA=6000`)).toMatchObject({
    exitCode: 0,
    out: expect.stringMatching(/Committed: TEA 60 %, abstained 40 %\. This is final\.\n.*chambers move reveal/),
  });
  live.advance(PHASE_MILLIS);
  expect((await chambers(`chamber show ${chamberId}`)).out).toContain('committed: 1 of 1; revealed: 0 of 1');
});

it('admission errors name the commands that satisfy the rules', async () => {
  const other = await newAgent(live);
  const admission = { dids: [other.did], provenWallets: true as const };
  const { chamberId } = await other.createChamber({ ...newChamber(live.now()), admission });
  const { exitCode, err } = await chambers(`move join ${chamberId}`);
  expect(exitCode).toBe(5);
  expect(err).toContain(`chambers move admit ${chamberId} --did=`);
  expect(err).toContain('chambers agent register --wallet-key-file=');
});

it('the error for a wrong address names the service’s public address', async () => {
  const { url } = await runService({ PUBLIC_URL: 'https://chambers.example.org' });
  const words = ['agent', 'register', '--wallet=0x1111111111111111111111111111111111111111', '--email=a@example.org'];
  const { exitCode, err } = await run(words, { CHAMBERS_URL: url, CHAMBERS_KEY_FILE: key });
  expect(exitCode).toBe(4);
  expect(err).toContain(`${url} expects signatures for https://chambers.example.org: use that URL`);
});

it('the error for a command without its group names the full command', async () => {
  const { exitCode, err } = await chambers('join 1');
  expect({ exitCode, err }).toEqual({
    exitCode: 2,
    err: "usage: unknown command 'join': did you mean chambers move join?",
  });
});

it('commands accept a label and the short name of a phase', async () => {
  await chambers(
    'agent register --wallet=0x1111111111111111111111111111111111111111 --email=a@example.org --label=Ada',
  );
  expect((await chambers('agent show')).out).toMatch(/^label +Ada$/m);
  expect(await chambers('chamber wait 1 commit')).toMatchObject({ err: expect.not.stringContaining('is not a phase') });
});

it('the hint for an untrusted certificate names the variable to set', () => {
  expect(tlsHint('DEPTH_ZERO_SELF_SIGNED_CERT')).toContain('NODE_EXTRA_CA_CERTS=');
  expect(tlsHint('ECONNREFUSED')).toBeUndefined();
});

it('the configuration for an MCP client contains only absolute paths', async () => {
  const { exitCode, out, err } = await run(['mcp', '--print-config', '--key=nowhere.json'], {
    CHAMBERS_URL: live.baseUrl,
  });
  const { command, args } = JSON.parse(out).mcpServers.chambers;
  expect({ exitCode, err }).toMatchObject({
    exitCode: 0,
    err: expect.stringContaining('chambers init --key=nowhere.json'),
  });
  expect(command).toBe(process.execPath);
  const [cli, ...rest] = args;
  expect(existsSync(cli)).toBe(true);
  expect(rest).toEqual(['mcp', `--url=${live.baseUrl}`, `--key=${resolve('nowhere.json')}`]);
});

it('the suggested next command repeats the given options', async () => {
  const { chamberId } = await (await newAgent(live)).createChamber(newChamber(live.now()));
  const { out } = await run(['chamber', 'show', `${chamberId}`, `--url=${live.baseUrl}`]);
  expect(out).toContain(`Next: chambers move join ${chamberId} --url=${live.baseUrl}\n`);
});

it('chamber show lists the version of each idea, and whether the idea is withdrawn', async () => {
  const ann = await newAgent(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  for (const ticker of ['TEA', 'MATE']) await ann.propose(chamberId, { name: `Hot ${ticker}`, ticker });
  live.advance(PHASE_MILLIS);
  await ann.amend(chamberId, { ideaId: 'TEA', name: 'Iced tea' });
  await ann.withdraw(chamberId, 'MATE');
  const { out } = await run(['chamber', 'show', `${chamberId}`, `--url=${live.baseUrl}`]);
  expect(out).toMatch(/^idea-1 +TEA +2 +0 +0 +– +Iced tea$/m);
  expect(out).toMatch(/^idea-2 +MATE +1 +0 +0 +– +Hot MATE +withdrawn$/m);
});

it('the configuration for an MCP client comes with warnings about problems with its server', async () => {
  const unregistered = join(live.folder, 'unregistered.json');
  await chambers(`agent new --key=${unregistered}`);
  const { out, err } = await chambers(`mcp --print-config --key=${unregistered}`);
  expect(JSON.parse(out).mcpServers.chambers.args).toContain(`--key=${unregistered}`);
  expect(err).toMatch(/not registered .*: run chambers agent register .*--key=/);
});

it('the configuration for an MCP client includes the user’s NODE_EXTRA_CA_CERTS', async () => {
  const env = { CHAMBERS_URL: live.baseUrl, NODE_EXTRA_CA_CERTS: 'ca.pem' };
  const { out } = await run(['mcp', '--print-config', `--key=${key}`], env);
  expect(JSON.parse(out).mcpServers.chambers.env).toEqual({ NODE_EXTRA_CA_CERTS: resolve('ca.pem') });
});

it('the error for a file that is not a key file does not suggest changing its mode', async () => {
  const notes = join(live.folder, 'notes.txt');
  writeFileSync(notes, 'hello');
  chmodSync(notes, 0o644);
  const { exitCode, err } = await chambers(`todo --key=${notes}`);
  expect({ exitCode, err }).toMatchObject({ exitCode: 4, err: expect.stringMatching(/is not a key file/) });
});

it('the error for https on an http port says so', async () => {
  const { exitCode, err } = await chambers(`chamber list --url=${live.baseUrl.replace('http:', 'https:')}`);
  expect({ exitCode, err }).toMatchObject({ exitCode: 6, err: expect.stringContaining('use http:// instead of') });
});
