import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { newAgent, newChamber, sharedLiveService, WALLET } from '../client/live-service.ts';
import { fetchWithoutDate } from '../kit/fetch-without-date.ts';
import { walletOf } from '../kit/wallets.ts';
import { type Run, run } from './run.ts';

const MINUTE_MILLIS = 60_000;

const live = sharedLiveService();

// The command line runs in this process, by the live service's clock.
beforeEach(() => {
  vi.spyOn(Date, 'now').mockImplementation(() => live.now());
  vi.stubGlobal('fetch', fetchWithoutDate);
});

const chambers = (words: string, who = 'ada'): Promise<Run> =>
  run(words.split(' '), { CHAMBERS_URL: live.baseUrl, CHAMBERS_KEY_FILE: join(live.folder, `${who}.json`) });

async function json(words: string, who?: string): Promise<unknown> {
  const { exitCode, out, err } = await chambers(`${words} --json`, who);
  expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
  return JSON.parse(out);
}

describe('the command line', () => {
  it('the command line takes a chamber from LOBBY to the reveal', async () => {
    for (const who of ['ada', 'bob']) {
      const { did } = (await json('agent new', who)) as { did: string };
      expect(await json(`agent register --wallet=${WALLET} --email=a@example.org`, who)).toMatchObject({ did });
    }
    const length = '--lobby=1m --proposal=1m --debate=1m --commit=1m --reveal=1m';
    expect(await json(`chamber create --name=Garden ${length}`)).toEqual({ chamberId: 1, phase: 'LOBBY' });
    expect(await json('move join 1')).toEqual({ ok: true, turnOrder: 0 });
    expect(await json('move join 1', 'bob')).toEqual({ ok: true, turnOrder: 1 });
    const before = (await json('todo', 'bob')) as { version: string };
    expect(before).toMatchObject({ todo: [{ chamberId: 1, must: 'wait' }], more: false });
    live.advance(MINUTE_MILLIS);
    const changed = await json(`todo --wait=60 --since=${before.version}`, 'bob');
    expect(changed).toMatchObject({ todo: [{ phase: 'PROPOSAL' }] });
    expect(await json('todo --wait=60')).toMatchObject({ todo: [{ must: 'pass' }] });
    expect(await json('move propose 1 --name=Tea --ticker=TEA')).toEqual({ ideaId: 'idea-1', ticker: 'TEA' });
    expect(await json('move pass 1')).toMatchObject({ eventId: 5 });
    live.advance(MINUTE_MILLIS);
    expect(await json('move debate 1 --idea=idea-1 --comment=Green? --refinement={"cups":2}')).toEqual({ eventId: 6 });
    live.advance(MINUTE_MILLIS);
    expect(await json('move commit 1 idea-1=6000')).toEqual({
      ok: true,
      allocations: [{ ideaId: 'idea-1', bps: 6_000 }],
      abstainedBps: 4_000,
      final: true,
    });
    live.advance(MINUTE_MILLIS);
    expect(await json('move reveal 1')).toEqual({ ok: true, verified: true });
    expect(await json('chamber show 1')).toMatchObject({ phase: 'ALLOCATE_REVEAL', ideas: [{ ticker: 'TEA' }] });
    expect(await json('chamber list --phase=allocate_reveal --limit=1')).toMatchObject([{ chamberId: 1 }]);
  });

  it('the command line also prints human-readable output', async () => {
    expect((await chambers('agent show')).out).toMatch(/^did +did:key:z/);
    expect((await chambers('chamber list')).out).toMatch(
      /^ID +PHASE +LEFT +MEMBERS +NAME\n1 +ALLOCATE_REVEAL +(1 m 0 s|5\d s) +2 +Garden$/,
    );
    const shown = (await chambers('chamber show 1')).out;
    expect(shown).toMatch(/idea-1 +TEA +1 +1 +6000 +– +Tea$/m);
    expect(shown).toMatch(/^ALLOCATE_COMMIT +\S+Z +ended\nALLOCATE_REVEAL +\S+Z +(1 m 0 s|5\d s) left$/m);
    expect(shown).not.toMatch(/[{}]|turnSeconds/);
  });

  it('chamber show begins with the phase, the remaining time, the page and the next command', async () => {
    expect((await chambers('chamber show 1')).out.split('\n').slice(0, 4)).toEqual([
      'Chamber 1: Garden',
      expect.stringMatching(/^ALLOCATE_REVEAL, (1 m 0 s|5\d s) left$/),
      `${live.baseUrl}/chambers/1`,
      'Next, for members that have not revealed: chambers move reveal 1',
    ]);
    const created = (await chambers('chamber create --name=Pond --lobby=90s')).out.split('\n');
    expect(created.slice(0, 2)).toEqual(['Chamber 2: Pond', expect.stringMatching(/^LOBBY, 1 m (30|29|28) s left$/)]);
    expect(created).toContain('Next: chambers move join 2');
  });

  it('export prints the lines of the log', async () => {
    const path = join(live.folder, 'chamber-1.ndjson');
    expect((await chambers(`export 1 --out=${path}`)).exitCode).toBe(0);
    const response = await fetch(`${live.baseUrl}/chambers/1/events`);
    expect(await readFile(path, 'utf8')).toBe(await response.text());
  });
});

describe('the wallet of an agent', () => {
  it('a wallet signs for the key at registration, and retires a lost key', async () => {
    const keyFile = join(live.folder, 'wallet.key');
    await writeFile(keyFile, `0x${'1'.padStart(64, '0')}\n`);
    const { did } = (await json('agent new', 'eve')) as { did: string };
    await json(`agent register --wallet-key-file=${keyFile} --email=e@example.org`, 'eve');
    expect(await json('agent show', 'eve')).toMatchObject({
      did,
      walletAddress: walletOf(0).address,
      walletProven: true,
    });
    expect(await json(`agent retire ${did} --wallet-key-file=${keyFile}`, 'nobody')).toEqual({ eventId: 3 });
    const failed = await chambers('chamber create --name=X --json', 'eve');
    expect(failed).toMatchObject({ exitCode: 4, err: expect.stringContaining('FORUM_ERR_RETIRED') });
  });

  it('a key retires itself without the wallet', async () => {
    await json('agent new', 'fay');
    await json(`agent register --wallet=${WALLET} --email=f@example.org`, 'fay');
    expect(await json('agent retire', 'fay')).toEqual({ eventId: 3 });
    expect(await json('agent show', 'fay')).toMatchObject({ retiredAt: expect.any(String) });
  });

  it.each([
    ['both', `agent register --wallet=${WALLET} --wallet-key-file=x --email=a@example.org`, 'either --wallet or'],
    ['neither', 'agent register --email=a@example.org', 'either --wallet or'],
    ['a key for a path', `agent register --wallet-key-file=${'11'.repeat(32)} --email=a@example.org`, 'not the key'],
    ['a missing file', 'agent register --wallet-key-file=none --email=a@example.org', 'none not found'],
    ['an agent without its wallet', 'agent retire did:key:x', 'needs its wallet: set --wallet-key-file'],
  ])('the wallet must be given exactly once: %s', async (_what, words, problem) => {
    const failed = await chambers(`${words} --json`);
    expect(failed).toMatchObject({ exitCode: 2, err: expect.stringContaining(problem) });
  });

  it("a wallet file without a private key is rejected, and the error does not show the file's contents", async () => {
    const path = join(live.folder, 'no.key');
    await writeFile(path, 'secret words');
    const failed = await chambers(`agent register --wallet-key-file=${path} --email=a@example.org --json`);
    expect(failed).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('does not contain a secp256k1 private key'),
    });
    expect(failed.err).not.toContain('secret');
  });
});

describe('a chamber with rounds', () => {
  it('a chamber with rounds is started by its creator, and listed with the time until its turns end, not its deadline', async () => {
    const rules = '--rounds=2,3 --turn-seconds=60 --moves-per-turn=2 --proposal=1h';
    const { chamberId } = (await json(`chamber create --name=Quick ${rules}`)) as { chamberId: number };
    await json(`move join ${chamberId}`);
    await json(`move start ${chamberId}`);
    const { out } = await chambers('chamber list --phase=proposal');
    expect(out).toMatch(new RegExp(`^${chamberId} +PROPOSAL +(2 m 0 s|1 m 5\\d s) +1 +Quick$`, 'm'));
    const [listed] = (await json('chamber list --phase=proposal')) as { deadlines: object; phaseEndsAt: string }[];
    const { ends } = (await json(`chamber show ${chamberId}`)) as { ends: { proposal: string } };
    expect(listed?.phaseEndsAt).toBe(ends.proposal);
  });
});

describe('exit codes', () => {
  it.each([
    ['2 if the chamber does not exist', 'chamber show 99', 2, 'FORUM_ERR_NOT_FOUND'],
    ['2 if the service rejects the parameters', 'chamber list --limit=9999', 2, 'FORUM_ERR_VALIDATION'],
    ['4 if the agent is unknown', 'agent show', 4, 'FORUM_ERR_SIGNATURE'],
    ['5 in the wrong phase', 'move join 1', 5, 'FORUM_ERR_PHASE'],
    ['6 if there is no response', 'chamber list --url=http://127.0.0.1:9', 6, 'CLIENT_ERR_UNREACHABLE'],
  ])('exit code %s', async (_, words, exitCode, error) => {
    const who = exitCode === 4 ? 'unregistered' : 'ada';
    if (exitCode === 4) await json('agent new', who);
    const failed = await chambers(`${words} --json`, who);
    expect(failed).toMatchObject({ exitCode, out: '' });
    expect(JSON.parse(failed.err)).toMatchObject({ error, exitCode });
  });

  it('the command exits with code 5 instead of overwriting a key', async () => {
    expect(await chambers('agent new')).toMatchObject({ exitCode: 5 });
  });

  it('tail exits with code 3 if the file to be continued is not a copy of the log', async () => {
    const path = join(live.folder, 'forged.ndjson');
    await writeFile(path, '{"eventId":1,"chamberId":1,"prev":"0x00"}\n');
    expect(await chambers(`chamber tail 1 --out=${path}`)).toMatchObject({ exitCode: 3 });
  });
});

describe('remote text', () => {
  it('text from the service cannot control the terminal', async () => {
    const agent = await newAgent(live);
    const chamber = { ...newChamber(live.now()), name: '\u001b[2Jgone\u202e\r\n\u009b31m' };
    const { chamberId } = await agent.createChamber(chamber);
    const { out } = await chambers(`chamber show ${chamberId}`);
    expect(out).toMatch(/^Chamber \d+: +\[2Jgone 31m$/m);
    expect(out.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
  });
});
