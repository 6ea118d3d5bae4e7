// A hostile service learns only what an agent intends to send: no allocation before commits are closed, and no file.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Agent, type ChamberEvent, ForumClient, folderStore, type StoredOpening } from '../../src/client/index.ts';
import { toLine } from '../../src/vocabulary/events.ts';
import { run } from '../cli/run.ts';
import { python, runPython } from '../kit/python.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { startSeat } from '../mcp/seat-process.ts';
import { type HostileService, openHostileService } from './hostile-service.ts';
import { newAgent, newChamber, PHASE_MILLIS, REGISTRATION, sharedLiveService } from './live-service.ts';

const SECRET = [{ ideaId: 'idea-1', bps: 1234 }];

const live = sharedLiveService();
let hostile: HostileService;
let folder: string;
let keyFile: string;
let chamberId: number;
beforeEach(async () => {
  hostile = await openHostileService(live.baseUrl);
  atEnd(hostile.close);
  folder = temporaryFolder();
  keyFile = join(folder, 'agent.json');
});

/** Returns an agent in a chamber with an idea, in ALLOCATE_COMMIT. */
async function inCommitPhase(): Promise<Agent> {
  const agent = await agentAt(hostile.url);
  await agent.register(REGISTRATION);
  const creator = await newAgent(live);
  ({ chamberId } = await creator.createChamber(newChamber(live.now())));
  for (const each of [creator, agent]) await each.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  await creator.propose(chamberId, { name: 'Garden', ticker: 'GRDN' });
  live.advance(2 * PHASE_MILLIS);
  return agent;
}

function agentAt(url: string, options = live.sharedTime): Promise<Agent> {
  return Agent.fromKeyFile(new ForumClient(url, options), keyFile);
}

/** From now on, every clock of the service is two hours ahead, so that it claims that the reveal phase has begun. */
function claimRevealPhase(): void {
  const late = new Date(live.now() + 2 * PHASE_MILLIS).toISOString();
  hostile.alter = (path, body) => {
    if (path.includes('/events')) return body;
    const claimed = body.replaceAll('ALLOCATE_COMMIT', 'ALLOCATE_REVEAL').replace(/"now":"[^"]*"/, `"now":"${late}"`);
    return claimed.replace('"must":"wait"', '"must":"reveal"');
  };
}

/** Serves a different first line of the chamber. */
function replaceCreation(change: (created: Created) => ChamberEvent): void {
  hostile.alter = (path, body) => {
    if (!path.includes('/events?after=0')) return body;
    const [first = '', ...rest] = body.split('\n');
    return [toLine(change(JSON.parse(first) as Created)), ...rest].join('\n');
  };
}

type Created = Extract<ChamberEvent, { type: 'chamber.created' }>;

/** The service names a commitment whose path leads to a copy of the agent's opening outside of its folder. */
function nameFileOutsideFolder(): void {
  const [stored = ''] = readdirSync(`${keyFile}.commitments`);
  copyFileSync(join(`${keyFile}.commitments`, stored), join(folder, 'other.json'));
  hostile.alter = (path, body) =>
    path.endsWith('/allocations') ? body.replace(/"commitment":"[^"]*"/, '"commitment":"../other"') : body;
}

/** The digits alone may occur in a hash by chance. */
const secretWasSent = () => hostile.received.some((request) => /"bps":\s*1234\b|salt/.test(request));

describe('an agent of the JavaScript client', () => {
  it('the JavaScript client reveals nothing while commits are open, whatever phase and time the service claims', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    claimRevealPhase();
    expect((await agent.forum.chamber(chamberId)).phase).toBe('ALLOCATE_REVEAL');
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_EARLY' });
    expect(secretWasSent()).toBe(false);
    live.advance(PHASE_MILLIS);
    expect(await agent.reveal(chamberId)).toEqual({ ok: true, verified: true });
    expect(secretWasSent()).toBe(true);
  });

  it('the JavaScript client delays a reveal that is seconds too early', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    live.advance(PHASE_MILLIS - 20_000);
    claimRevealPhase();
    const revealed = agent.reveal(chamberId);
    await live.sleeping(1);
    expect(secretWasSent()).toBe(false);
    live.advance(20_000);
    expect(await revealed).toEqual({ ok: true, verified: true });
  });

  it.each([-3, 3])('the JavaScript client reveals in time although its clock is wrong by %d hours', async (hours) => {
    await inCommitPhase();
    const now = () => live.now() + hours * PHASE_MILLIS;
    const agent = await agentAt(hostile.url, { ...live.sharedTime, clock: { now, sleep: async () => {} } });
    await agent.commit(chamberId, SECRET);
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_EARLY' });
    live.advance(PHASE_MILLIS);
    expect(await agent.reveal(chamberId)).toEqual({ ok: true, verified: true });
  });

  it('the JavaScript client reveals only to the service at which it committed', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    live.advance(PHASE_MILLIS);
    const elsewhere = await openHostileService(live.baseUrl);
    atEnd(elsewhere.close);
    const lost = await agentAt(elsewhere.url);
    await expect(lost.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_COMMITMENT' });
    expect(elsewhere.received.some((request) => request.includes('salt'))).toBe(false);
  });

  it('the JavaScript client reveals nothing in a different chamber with the same id', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    live.advance(PHASE_MILLIS);
    const other = await (await newAgent(live)).createChamber(newChamber(live.now()));
    const [first] = await collect(live.forum.history(other.chamberId));
    // Signed by the chamber's creator, but for another chamber.
    replaceCreation(() => ({ ...(first?.event as Created), chamberId }));
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_COMMITMENT' });
    expect(secretWasSent()).toBe(false);
  });

  it.each<readonly [string, (created: Created) => ChamberEvent, string]>([
    ['altered deadlines', (created) => ({ ...created, payload: inThePast(created) }), 'CLIENT_ERR_CHAIN'],
    ['no signature', (created) => ({ ...created, request: null }), 'CLIENT_ERR_CHAIN'],
    ['another creator', (created) => ({ ...created, did: Agent.generate(live.baseUrl).did }), 'CLIENT_ERR_CHAIN'],
    ['a prev hash', (created) => ({ ...created, prev: `0x${'11'.repeat(32)}` }), 'CLIENT_ERR_CHAIN'],
  ])('the JavaScript client does not commit in a chamber whose first line has %s', async (_, change, code) => {
    const agent = await inCommitPhase();
    replaceCreation(change);
    await expect(agent.commit(chamberId, SECRET)).rejects.toMatchObject({ code });
    expect(hostile.received.filter((request) => request.includes('allocate/commit'))).toEqual([]);
  });

  it('the JavaScript client does not commit after the signed commit deadline', async () => {
    const agent = await inCommitPhase();
    live.advance(PHASE_MILLIS);
    hostile.alter = (_, body) => body.replaceAll('ALLOCATE_REVEAL', 'ALLOCATE_COMMIT');
    await expect(agent.commit(chamberId, SECRET)).rejects.toMatchObject({ code: 'FORUM_ERR_PHASE' });
    expect(hostile.received.filter((request) => request.includes('allocate/commit'))).toEqual([]);
  });

  it('the JavaScript client reads no file that the service names', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    live.advance(PHASE_MILLIS);
    nameFileOutsideFolder();
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_COMMITMENT' });
    expect(secretWasSent()).toBe(false);
    const store = folderStore(`${keyFile}.commitments`);
    await expect(Promise.resolve().then(() => store.find('../other' as '0x'))).rejects.toMatchObject({
      code: 'CLIENT_ERR_INPUT',
    });
  });

  it('the JavaScript client reveals only an opening that hashes to its commitment', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    live.advance(PHASE_MILLIS);
    editOpening((opening) => ({ ...opening, allocations: [] }));
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_COMMITMENT' });
    expect(secretWasSent()).toBe(false);
  });

  it('the JavaScript client reveals an opening of an earlier version only if told to trust the service', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    live.advance(PHASE_MILLIS);
    editOpening(({ binding: _, ...opening }) => opening);
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({
      code: 'CLIENT_ERR_COMMITMENT',
      detail: expect.stringContaining('--trust-service'),
    });
    expect(secretWasSent()).toBe(false);
    expect(await agent.reveal(chamberId, { trustService: true })).toEqual({ ok: true, verified: true });
  });
});

describe('an agent of the Python client', () => {
  python(
    'the Python client reveals nothing while commits are open, whatever phase and time the service claims',
    async () => {
      await inCommitPhase();
      expect(await inPython(hostile.url, keyFile, 'commit')).toBe(
        '{"ok": true, "allocations": [{"ideaId": "idea-1", "bps": 1234}], "abstainedBps": 8766, "final": true}',
      );
      claimRevealPhase();
      expect(await inPython(hostile.url, keyFile, 'reveal')).toBe('CLIENT_ERR_EARLY');
      expect(secretWasSent()).toBe(false);
      live.advance(PHASE_MILLIS);
      expect(await inPython(hostile.url, keyFile, 'reveal')).toBe('{"ok": true, "verified": true}');
    },
  );

  python(
    'the Python client reveals nothing to another service, and an opening of an earlier version only if told to trust the service',
    async () => {
      await inCommitPhase();
      await inPython(hostile.url, keyFile, 'commit');
      live.advance(PHASE_MILLIS);
      expect(await inPython(live.baseUrl, keyFile, 'reveal')).toBe('CLIENT_ERR_COMMITMENT');
      editOpening(({ binding: _, ...opening }) => opening);
      expect(await inPython(hostile.url, keyFile, 'reveal')).toBe('CLIENT_ERR_COMMITMENT');
      expect(secretWasSent()).toBe(false);
      expect(await inPython(hostile.url, keyFile, 'trust')).toBe('{"ok": true, "verified": true}');
    },
  );

  python('the Python client shares its openings with the JavaScript client', async () => {
    const agent = await inCommitPhase();
    await inPython(hostile.url, keyFile, 'commit');
    await expect(agent.reveal(chamberId)).rejects.toMatchObject({ code: 'CLIENT_ERR_EARLY' });
    live.advance(PHASE_MILLIS);
    expect(await agent.reveal(chamberId)).toEqual({ ok: true, verified: true });
  });

  python('the Python client does not commit in a chamber whose creator did not sign its deadlines', async () => {
    await inCommitPhase();
    replaceCreation((created) => ({ ...created, payload: inThePast(created) }));
    expect(await inPython(hostile.url, keyFile, 'commit')).toBe('CLIENT_ERR_CHAIN');
    replaceCreation((created) => ({ ...created, request: null }));
    expect(await inPython(hostile.url, keyFile, 'commit')).toBe('CLIENT_ERR_CHAIN');
    expect(hostile.received.filter((request) => request.includes('allocate/commit'))).toEqual([]);
  });

  python('the Python client reads no file that the service names', async () => {
    await inCommitPhase();
    await inPython(hostile.url, keyFile, 'commit');
    live.advance(PHASE_MILLIS);
    nameFileOutsideFolder();
    expect(await inPython(hostile.url, keyFile, 'reveal')).toBe('CLIENT_ERR_COMMITMENT');
    expect(secretWasSent()).toBe(false);
  });
});

describe('an MCP server', () => {
  it('an MCP server reveals nothing while commits are open, and automatically once they are closed', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    claimRevealPhase();
    const seat = await startSeat('modern', { url: hostile.url, keyFile, env: live.sharedTimeEnv });
    await eventually(() => expect(seat.bytes()).toContain(`not revealed in chamber ${chamberId}`), 60_000);
    expect(secretWasSent()).toBe(false);
    live.advance(PHASE_MILLIS);
    await eventually(() => expect(seat.bytes()).toContain(`revealed in chamber ${chamberId}\n`), 60_000);
  });
});

describe('the command line', () => {
  it('the command line reveals nothing while commits are open, unless told to trust the service', async () => {
    const agent = await inCommitPhase();
    await agent.commit(chamberId, SECRET);
    claimRevealPhase();
    const words = ['move', 'reveal', `${chamberId}`, `--url=${hostile.url}`, `--key=${keyFile}`];
    const early = await run(words);
    expect(early).toMatchObject({ exitCode: 5, err: expect.stringContaining('CLIENT_ERR_EARLY') });
    expect(secretWasSent()).toBe(false);
    live.advance(PHASE_MILLIS);
    // Commits are still open by this machine's clock.
    expect(await run(words)).toMatchObject({ exitCode: 5 });
    expect(await run([...words, '--trust-service'])).toMatchObject({ exitCode: 0 });
  });
});

function inThePast({ payload }: Created): Created['payload'] {
  const earlier = Object.entries(payload.deadlines).map(([name, at]) => {
    return [name, new Date(Date.parse(at) - PHASE_MILLIS / 2).toISOString()];
  });
  return { ...payload, deadlines: Object.fromEntries(earlier) };
}

/** The only opening in the agent's folder. */
function editOpening(change: (opening: StoredOpening) => object): void {
  const [name = ''] = readdirSync(`${keyFile}.commitments`);
  const path = join(`${keyFile}.commitments`, name);
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))));
}

async function collect<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

const PYTHON = `
import json, sys
from chambers import Agent, ChamberError
agent = Agent.from_key_file(sys.argv[1], sys.argv[2])
chamber_id = int(sys.argv[4])
try:
    if sys.argv[3] == "commit":
        print(json.dumps(agent.commit(chamber_id, [{"ideaId": "idea-1", "bps": 1234}])))
    else:
        print(json.dumps(agent.reveal(chamber_id, trust_service=sys.argv[3] == "trust")))
except ChamberError as error:
    print(error.code)
`;

/** Runs the command with the service's clock. */
async function inPython(...args: readonly string[]): Promise<string> {
  return (await runPython(PYTHON, [...args, `${chamberId}`], { env: live.sharedTimeEnv })).trim();
}
