// watch passes each of an agent's duties to the handler once and reveals, on a real service.
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { Duties } from '../../src/client/duties.ts';
import { Agent, type Duty, ForumClient, type WatchReport } from '../../src/client/index.ts';
import { fetchWithoutDate } from '../kit/fetch-without-date.ts';
import { atEnd } from '../kit/temporary.ts';
import { eventually, until } from '../kit/until.ts';
import { openProxy } from './cuttable-proxy.ts';
import { newAgent, newChamber, PHASE_MILLIS, REGISTRATION, sharedLiveService } from './live-service.ts';

const live = sharedLiveService();
const MINUTE_MILLIS = 60_000;

interface Watch {
  readonly duties: Duty[];
  readonly reports: WatchReport[];
  readonly stop: () => void;
  readonly ended: Promise<unknown>;
}

/** Watches until the end of the test. */
function startWatch(agent: Agent, onDue: (duty: Duty) => Promise<unknown> | unknown = () => {}): Watch {
  const stop = new AbortController();
  const [duties, reports]: [Duty[], WatchReport[]] = [[], []];
  const options = { signal: stop.signal, onReport: (report: WatchReport) => void reports.push(report) };
  const ended = agent.watch({
    ...options,
    onDue: async (duty) => {
      duties.push(duty);
      await onDue(duty);
    },
  });
  const settled = ended.catch((error: unknown) => error);
  atEnd(async () => {
    stop.abort();
    await settled;
  });
  return { duties, reports, stop: () => stop.abort(new Error('stopped')), ended: settled };
}

/**
 * Returns an agent, and a function that advances the clock. The service has real timers and notices the new time at the agent's next connection.
 */
async function newWatched() {
  const proxy = await openProxy(live.baseUrl);
  const agent = Agent.generate(new ForumClient(proxy.baseUrl, live.sharedTime));
  await agent.register(REGISTRATION);
  const advance = (millis: number) => {
    live.advance(millis);
    proxy.cut();
  };
  return { agent, advance, cut: () => proxy.cut() };
}

const named = ({ phase, must }: Duty) => `${phase} ${must}`;

it('watch passes each turn and the commit to the handler once, and reveals automatically', async () => {
  const [ann, bob] = [await newAgent(live), await newAgent(live)];
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  await bob.joinChamber(chamberId);
  const { duties, reports } = startWatch(ann, async ({ must, phase }) => {
    if (must === 'commit') return await ann.commit(chamberId, [{ ideaId: 'TEA', bps: 10_000 }]);
    if (phase === 'PROPOSAL' && duties.length === 1) await ann.propose(chamberId, { name: 'Tea', ticker: 'TEA' });
    return await ann.pass(chamberId);
  });
  live.advance(PHASE_MILLIS);
  await eventually(async () => expect(await bob.pass(chamberId)).toMatchObject({ nextTurnAgent: ann.did }));
  await eventually(async () => expect(await bob.todo()).toMatchObject({ todo: [{ must: 'pass' }] }));
  live.advance(PHASE_MILLIS);
  await until(() => duties.length === 3);
  await eventually(async () => expect(await bob.todo()).toMatchObject({ todo: [{ phase: 'DEBATE', must: 'pass' }] }));
  live.advance(PHASE_MILLIS);
  await until(() => duties.length === 4);
  await eventually(async () => expect((await ann.todo()).todo).toMatchObject([{ committed: true }]));
  live.advance(PHASE_MILLIS);
  await until(() => reports.length > 0);
  expect(duties.map(named)).toEqual(['PROPOSAL pass', 'PROPOSAL pass', 'DEBATE pass', 'ALLOCATE_COMMIT commit']);
  expect(reports).toEqual([{ type: 'revealed', chamberId }]);
  expect(await live.forum.allocations(chamberId)).toMatchObject({ revealed: [{ did: ann.did }] });
});

it('watch passes the next turn of a lone member to the handler, although the list differs only by the pass', async () => {
  const ann = await newAgent(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const { duties } = startWatch(ann, async () => {
    await ann.propose(chamberId, { name: 'Tea', ticker: `TEA-${duties.length}` });
    if (duties.length < 4) await ann.pass(chamberId);
  });
  await until(() => duties.length === 4);
  await eventually(async () => expect(await live.forum.chamberIdeas(chamberId)).toHaveLength(4));
  await ann.propose(chamberId, { name: 'Mate', ticker: 'MATE' });
  await startAndWait(ann, chamberId);
  expect(duties).toHaveLength(4);
});

/** Resolves once another watch of the agent has received the same lists as the first. */
async function startAndWait(agent: Agent, chamberId: number): Promise<void> {
  const { lastEventId } = (await agent.todo()).todo.find((item) => item.chamberId === chamberId) ?? {};
  const { duties } = startWatch(agent);
  await until(() => duties.some((duty) => duty.chamberId === chamberId && duty.lastEventId === lastEventId));
}

it('watch waits for a service that is unreachable at its start', async () => {
  const proxy = await openProxy(live.baseUrl);
  const seed = randomBytes(32);
  await Agent.fromSeed(live.forum, seed).register(REGISTRATION);
  const options = { ...live.sharedTime, patienceMillis: 100 };
  proxy.refuse();
  const { reports } = startWatch(Agent.fromSeed(new ForumClient(proxy.baseUrl, options), seed));
  await until(() => reports.length > 0);
  expect(reports).toMatchObject([{ type: 'not-followed', error: { code: 'CLIENT_ERR_UNREACHABLE' } }]);
  proxy.accept();
  await until(() => reports.length > 1);
  expect(reports[1]).toEqual({ type: 'followed-again' });
});

it('watch passes a turn that follows an expired one to the handler', async () => {
  const { agent: ann, advance } = await newWatched();
  const { chamberId } = await ann.createChamber({ ...newChamber(live.now()), turnSeconds: 60 });
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const { duties } = startWatch(ann);
  await until(() => duties.length === 1);
  advance(MINUTE_MILLIS);
  await until(() => duties.length === 2);
  expect(Date.parse(duties[1]?.turnEndsAt ?? '') - Date.parse(duties[0]?.turnEndsAt ?? '')).toBe(MINUTE_MILLIS);
});

it('watch handles one duty at a time per chamber, and several chambers concurrently', async () => {
  const { agent: ann, advance } = await newWatched();
  const chamberIds = [1, 2].map(async () => {
    const { chamberId } = await ann.createChamber({ ...newChamber(live.now()), turnSeconds: 60 });
    await ann.joinChamber(chamberId);
    return chamberId;
  });
  const [first = 0, second = 0] = await Promise.all(chamberIds);
  live.advance(PHASE_MILLIS);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { duties } = startWatch(ann, ({ chamberId }) => (chamberId === first ? held : undefined));
  await until(() => duties.length === 2);
  advance(MINUTE_MILLIS);
  await until(() => duties.length === 3);
  expect(duties.map(({ chamberId }) => chamberId).toSorted()).toEqual([first, second, second].toSorted());
  release();
  await until(() => duties.length === 4);
  expect(duties[3]?.chamberId).toBe(first);
});

it('watch retries a failed duty until it is over', async () => {
  const { agent: ann, advance } = await newWatched();
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const { duties, reports } = startWatch(ann, () => {
    throw new Error(`no. ${duties.length}`);
  });
  await until(() => reports.length === 1);
  advance(1_000);
  await until(() => reports.length === 2);
  const [first, second] = reports.map((report) => (report.type === 'duty-failed' ? report : undefined));
  expect(first).toMatchObject({ duty: { chamberId, must: 'pass' }, error: new Error('no. 1') });
  expect(second).toMatchObject({ error: new Error('no. 2') });
  expect(second?.retryMillis).toBeGreaterThan(first?.retryMillis ?? 0);
  advance(2 * PHASE_MILLIS);
  await until(() => duties.at(-1)?.must === 'commit');
  expect(new Set(duties.map(named))).toEqual(new Set(['PROPOSAL pass', 'ALLOCATE_COMMIT commit']));
});

it('watch neither misses nor repeats a duty when connections are cut', async () => {
  const { agent: ann, cut } = await newWatched();
  const bob = await newAgent(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  await bob.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const { duties } = startWatch(ann, () => ann.pass(chamberId));
  for (let turn = 1; turn <= 4; turn++) {
    await until(() => duties.length === turn);
    await eventually(async () => expect(await bob.todo()).toMatchObject({ todo: [{ must: 'pass' }] }));
    cut();
    await bob.pass(chamberId);
  }
  await until(() => duties.length === 5);
});

it('watch does not repeat a duty because of an older list from a node that is behind', async () => {
  const ann = await newAgent(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const first = await ann.todo();
  await ann.pass(chamberId);
  const second = await ann.todo();
  const stop = new AbortController();
  const handed: number[] = [];
  const duties = new Duties(ann.forum, {
    atOnceMax: 1,
    signal: stop.signal,
    report: () => {},
    onDue: ({ lastEventId }) => void handed.push(lastEventId),
  });
  duties.offer(second);
  await until(() => handed.length === 1);
  for (const todo of [first, second, first]) {
    duties.offer(todo);
    // Enough time for a wrong second call of the handler.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await ann.pass(chamberId);
  const third = await ann.todo();
  duties.offer(third);
  await until(() => handed.length > 1);
  stop.abort();
  await duties.ended();
  expect(handed).toEqual([second, third].map(({ todo }) => todo[0]?.lastEventId));
});

it('watch throws the signal’s reason once the running handlers have ended', async () => {
  const ann = await newAgent(live);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  let hasEnded = false;
  const watch = startWatch(ann, async () => {
    await new Promise((resolve) => setTimeout(resolve, 200));
    hasEnded = true;
  });
  await until(() => watch.duties.length === 1);
  watch.stop();
  expect(await watch.ended).toEqual(new Error('stopped'));
  expect(hasEnded).toBe(true);
});

it('watch throws at once for an unregistered agent', async () => {
  const stranger = Agent.generate(new ForumClient(live.baseUrl, live.sharedTime));
  await expect(stranger.watch({ onDue: () => {} })).rejects.toMatchObject({
    code: 'FORUM_ERR_SIGNATURE',
    step: 'registration',
  });
});

it('watch reports once that a commitment can’t be revealed because its salt is missing', async () => {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  const open = () => Agent.fromSeed(new ForumClient(live.baseUrl, live.sharedTime), seed);
  const ann = open();
  await ann.register(REGISTRATION);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(3 * PHASE_MILLIS);
  await ann.commit(chamberId, [], { abstain: true });
  const { reports } = startWatch(open());
  await until(() => reports.length > 0);
  expect(reports).toMatchObject([{ type: 'unrevealable', chamberId, error: { code: 'CLIENT_ERR_COMMITMENT' } }]);
});

it('watch reports a lost connection to the service once, and its return', async () => {
  const proxy = await openProxy(live.baseUrl);
  let isForeign = false;
  const fetch = async (url: string, init: RequestInit) =>
    isForeign ? Response.json({ todo: {} }) : fetchWithoutDate(url, init);
  const ann = Agent.generate(new ForumClient(proxy.baseUrl, { ...live.sharedTime, fetch }));
  await ann.register(REGISTRATION);
  const { chamberId } = await ann.createChamber(newChamber(live.now()));
  await ann.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const { duties, reports } = startWatch(ann);
  await until(() => duties.length === 1);
  const types = () => reports.map(({ type }) => type);
  for (const before of [[], ['not-followed', 'followed-again']]) {
    isForeign = true;
    proxy.cut();
    await eventually(() => expect(types()).toEqual([...before, 'not-followed']));
    isForeign = false;
    await eventually(() => expect(types()).toEqual([...before, 'not-followed', 'followed-again']));
  }
});
