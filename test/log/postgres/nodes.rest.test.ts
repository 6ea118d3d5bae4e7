// Several nodes on one log, without affinity: no gap and no duplicate, and every node shows every answered move.
import { describe, expect, it, vi } from 'vitest';
import { leafHash } from '../../../src/crypto/merkle.ts';
import { ALL_CHAMBERS, type AppendBatch, type EventLog } from '../../../src/log/log.ts';
import type { Store } from '../../../src/log/store.ts';
import type { StreamId } from '../../../src/log/stream-id.ts';
import { ForumError } from '../../../src/vocabulary/errors.ts';
import { toHex } from '../../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, enterPhase, openChamber } from '../../kit/chambers.ts';
import { HOUR, TestClock } from '../../kit/clock.ts';
import { actBefore, countTokens, Gate, withMembers } from '../../kit/members.ts';
import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { Random } from '../../kit/random.ts';
import type { Signer } from '../../kit/signer.ts';
import {
  type Answer,
  type Prepared,
  registrationOf,
  TestService,
  type TestServiceOptions,
} from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { verifyChamber, verifyLists } from '../../kit/verify-chamber.ts';
import { newSignatureKey } from '../entries.ts';

const NODES = 3;
/** The number of rounds; each round sends eight requests, each to all nodes. */
const { REQUEST_ROUNDS = '12' } = process.env;
const ROUNDS = Number(REQUEST_ROUNDS);

async function openNodes(options: TestServiceOptions = {}) {
  const url = await temporaryPostgres();
  const clock = new TestClock();
  const nodes: TestService[] = [];
  for (let node = 0; node < NODES; node++)
    nodes.push(new TestService({ store: await openStore(url), clock, ...options }));
  const everywhere = (request: Prepared) => Promise.all(nodes.map((node) => node.send(request)));
  return { url, clock, nodes, first: nodes[0] as TestService, everywhere };
}

/** Two nodes, the second of which reads pages through a gate, and two chambers in DEBATE whose member comments at either node. */
async function openGated() {
  const { url, clock, first } = await openNodes();
  const gate = new Gate();
  const wrapLog = (log: EventLog) => actBefore(log, 'readPage', gate.pass);
  const second = new TestService({ store: await openStore(url), clock, wrapLog });
  const by = await first.agent();
  const debate = (service: TestService, id: number) =>
    service.must('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
  const chamberIds = [await openChamber(first, [by]), await openChamber(first, [by])] as const;
  await enterPhase(first, chamberIds[0], 'DEBATE');
  return { first, second, gate, chamberIds, debate };
}

const seen = ({ status, body }: Answer) => JSON.stringify([status, body]);

/** A log whose appends wait at the gate. */
const appendsThrough = (gate: Gate) => (log: EventLog) => actBefore(log, 'append', gate.pass);

describe('the same signed request at every node at once', () => {
  it('the same signed request at every node at once yields one event and one response', {
    timeout: 900_000,
  }, async () => {
    const { clock, first, everywhere } = await openNodes({ settings: { CHAMBERS_OPEN_PER_DID_MAX: `${ROUNDS + 1}` } });
    const agents = [await first.agent(), await first.agent(), await first.agent()];
    const [ann] = agents as [Signer];
    const id = await openChamber(first, agents);
    await enterPhase(first, id, 'DEBATE');
    const created: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const prepare = (by: Signer, method: string, path: string, body: unknown) =>
        first.prepare(method, path, { by, body });
      const body = { name: `Chamber ${round}`, ...deadlinesFrom(clock.read()) };
      const requests = [
        ...agents.map((_, at) => prepare(ann, 'POST', `/chambers/${id}/debate`, { comment: `${at}` })),
        ...agents.map((by) => prepare(by, 'POST', '/chambers', body)),
        prepare(ann, 'PUT', '/personality', { patch: { style: `${round}` } }),
        prepare(ann, 'POST', '/register', { ...registrationOf(ann), personality: { style: `${round % 3}` } }),
      ];
      const answers = await Promise.all(requests.map(everywhere));
      expect(answers.map((each) => new Set(each.map(seen)).size)).toEqual(requests.map(() => 1));
      expect(answers.flat().filter(({ status }) => status !== 200)).toEqual([]);
      created.push(...answers.slice(3, 6).map(([answer]) => answer?.body.chamberId));
    }
    expect(created.toSorted((one, other) => one - other)).toEqual(created.map((_, index) => id + 1 + index));
    expect(await first.log.lastEventId(id)).toBe(1 + agents.length + ROUNDS * agents.length);
  });

  describe('the last chamber that an agent may create', () => {
    async function openGatedNodes(throughGate: (store: Store, gate: Gate) => Store) {
      const gate = new Gate();
      const settings = { CHAMBERS_OPEN_PER_DID_MAX: '1' };
      const { url, clock, first } = await openNodes({ settings });
      const other = new TestService({ store: throughGate(await openStore(url), gate), clock, settings });
      const by = await first.agent();
      const create = (name: string) =>
        first.prepare('POST', '/chambers', { by, body: { name, ...deadlinesFrom(clock.read()) } });
      // From here on, the other node waits only for the gate.
      await other.must('GET', '/me', { by });
      gate.isClosed = true;
      return { first, other, create, gate };
    }

    it('a repeated creation at the limit is not counted again by a node that counts after its commit', async () => {
      const { first, other, create, gate } = await openGatedNodes((store, gate) => ({
        ...store,
        lists: actBefore(store.lists, 'countOpenChambers', gate.pass),
      }));
      const request = create('Last');
      const late = other.send(request);
      await eventually(() => expect(gate.isClosed).toBe(false));
      const answer = await first.send(request);
      expect(answer).toMatchObject({ status: 200, body: { chamberId: 1 } });
      expect((await first.send(create('Another'))).status).toBe(409);
      gate.open();
      expect(seen(await late)).toBe(seen(answer));
    });

    it('a creation is not rejected because of a chamber that lost to another node', async () => {
      const { first, other, create, gate } = await openGatedNodes((store, gate) => ({
        ...store,
        log: appendsThrough(gate)(store.log),
      }));
      const [request, competing] = [create('Last'), create('Competing')];
      const lost = other.send(competing);
      const late = other.send(request);
      await eventually(() => expect(gate.isClosed).toBe(false));
      const answer = await first.send(request);
      expect(answer).toMatchObject({ status: 200, body: { chamberId: 1 } });
      gate.open();
      expect(await lost).toMatchObject({ status: 409 });
      expect(seen(await late)).toBe(seen(answer));
    });
  });
});

describe('a chamber with rounds at several nodes', () => {
  it('the phases of a chamber with rounds end at the same event for all nodes', async () => {
    const { nodes, first } = await openNodes();
    const agents = [await first.agent(), await first.agent(), await first.agent()];
    const pace = { turnSeconds: 3_600, rounds: { proposal: 1, debate: 1 }, maxMembers: agents.length };
    const id = await openChamber(first, agents, pace);
    const phases: unknown[] = [];
    /** Each agent moves at its own node, and retries until its turn or the phase comes. */
    const allAtOnce = async (path: string, bodyOf: (by: Signer) => object = () => ({})) => {
      const tries = agents.map(async (by, at) => {
        const node = nodes[at] as TestService;
        for (;;) {
          const { status, body } = await node.request('POST', `/chambers/${id}/${path}`, { by, body: bodyOf(by) });
          if (status === 200) return;
          expect(body.error).toMatch(/^FORUM_ERR_(TURN|PHASE)$/);
        }
      });
      await Promise.all(tries);
      const views = await Promise.all(nodes.map((node) => node.must('GET', `/chambers/${id}`)));
      for (const view of views) expect(view).toEqual(views[0]);
      phases.push(views[0].phase);
    };
    await allAtOnce('pass');
    await allAtOnce('pass');
    await allAtOnce('allocate/commit', (by) => allocationOf(id, by).commit);
    await allAtOnce('allocate/reveal', (by) => allocationOf(id, by).reveal);
    expect(phases).toEqual(['DEBATE', 'ALLOCATE_COMMIT', 'ALLOCATE_REVEAL', 'ALLOCATE_REVEAL']);
    expect(await first.log.lastEventId(id)).toBe(1 + agents.length * 5);
    const late = await Promise.all(
      nodes.map((node) => node.request('POST', `/chambers/${id}/pass`, { by: agents[0], body: {} })),
    );
    expect(late.map(({ body }) => body.error)).toEqual(nodes.map(() => 'FORUM_ERR_PHASE'));
  });
});

describe('a read', () => {
  it('a read at any node shows the moves that another node has answered', async () => {
    const { nodes, first } = await openNodes();
    const by = await first.agent();
    const id = await openChamber(first, [by]);
    for (let event = 3; event < 60; event++) {
      const [writer, reader] = [nodes[event % NODES], nodes[(event + 1) % NODES]] as [TestService, TestService];
      if (event === 3) await enterPhase(first, id, 'DEBATE');
      await writer.must('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
      expect(await reader.must('GET', `/chambers/${id}/merkle-preview`)).toMatchObject({ eventCount: event });
    }
  });

  it('a read at another node shows a new chamber, a new agent and a changed account', async () => {
    const { nodes, first } = await openNodes();
    const [one, other] = nodes as [TestService, TestService];
    const by = await one.agent();
    const id = await openChamber(other, [by]);
    await one.must('PUT', '/personality', { by, body: { patch: { style: 'dry' } } });
    expect((await other.must('GET', '/me', { by })).personality).toEqual({ style: 'dry' });
    expect((await first.must('GET', '/chambers')).map((chamber: { chamberId: number }) => chamber.chamberId)).toEqual([
      id,
    ]);
  });
});

it('moves need no read of the database, and moves that arrive during an append share the next append', async () => {
  const gate = new Gate();
  let isSilent = false;
  const silent = async () => {
    if (isSilent) await new Promise(() => {});
  };
  const store = await openStore(await temporaryPostgres());
  let log = appendsThrough(gate)(store.log);
  for (const read of ['readPage', 'lastEventId', 'readSnapshot', 'readNodes'] as const)
    log = actBefore(log, read, silent);
  const service = new TestService({ store: { ...store, log } });
  const by = await service.agent();
  const chamberId = await openChamber(service, [by]);
  await enterPhase(service, chamberId, 'DEBATE');
  const debate = (count: number) => {
    const moves = Array.from({ length: count }, () => ({
      did: by.did,
      request: null,
      signature: newSignatureKey(),
      times: null,
    }));
    const body = { json: { comment: 'hm' } };
    return Promise.all(moves.map((caller) => service.forum.submit({ operation: 'debate', chamberId, body, caller })));
  };
  await debate(1);
  isSilent = true;
  gate.isClosed = true;
  const held = debate(1);
  await eventually(() => expect(gate.isClosed).toBe(false));
  const others = debate(8);
  await waitSomeTurns();
  const { open } = gate;
  gate.isClosed = true;
  open();
  await held;
  await eventually(() => expect(gate.isClosed).toBe(false));
  gate.isClosed = true;
  gate.open();
  expect((await others).map(({ eventId }) => eventId)).toEqual([5, 6, 7, 8, 9, 10, 11, 12]);
  expect(gate.isClosed).toBe(true);
});

describe('a batch', () => {
  it('a batch that could not be appended wakes no reader', async () => {
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', () => {
        throw new ForumError('FORUM_ERR_UNAVAILABLE', 'no database');
      });
    const store = await openStore(await temporaryPostgres());
    const { forum } = new TestService({ store, wrapLog });
    // A node that starts to listen wakes its own followers.
    await eventually(() => expect(store.nodes.state().isListening).toBe(true), 20_000);
    let wakes = 0;
    forum.follow(ALL_CHAMBERS, () => wakes++);
    const caller = { did: 'did:key:z6Mk', request: null, signature: null, times: null };
    const move = forum.submit({ operation: 'createChamber', body: { json: {} }, caller });
    await expect(move).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    await waitSomeTurns();
    expect(wakes).toBe(0);
  });

  it('a batch waits briefly for as many moves as the last batch had', async () => {
    const batches: number[] = [];
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', async ({ entries }) => {
        batches.push(entries.length);
        // Long enough that waiting pays off.
        for (const start = performance.now(); performance.now() < start + 3; ) await new Promise(setImmediate);
      });
    const service = new TestService({ store: await openStore(await temporaryPostgres()), wrapLog });
    const by = await service.agent();
    const chamberId = await openChamber(service, [by]);
    await enterPhase(service, chamberId, 'DEBATE');
    const debate = (count: number) => {
      const caller = { did: by.did, request: null, signature: null, times: null };
      const move = { operation: 'debate', chamberId, body: { json: { comment: 'hm' } }, caller } as const;
      return Promise.all(Array.from({ length: count }, () => service.forum.submit(move)));
    };
    batches.length = 0;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await debate(8);
      const early = debate(5);
      await waitSomeTurns();
      expect(batches).toEqual([8]);
      await Promise.all([early, debate(3)]);
      const few = debate(2);
      await waitSomeTurns();
      expect(batches).toEqual([8, 8]);
      vi.advanceTimersByTime(10);
      await few;
      await debate(2);
      expect(batches).toEqual([8, 8, 2, 2]);
    } finally {
      vi.useRealTimers();
    }
  });
});

/** Waits for more turns of the event loop than a batch needs to start. */
async function waitSomeTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

describe('a move decided on in-memory state', () => {
  async function openDebate(options: TestServiceOptions = {}) {
    const { nodes, first } = await openNodes(options);
    const other = nodes[1] as TestService;
    const [ann, bob] = [await first.agent(), await first.agent()];
    const id = await openChamber(first, [ann, bob]);
    await enterPhase(first, id, 'PROPOSAL');
    // From here on, both nodes have the chamber and its agents in memory, and the other node lacks the appends of the first.
    for (const by of [ann, bob]) {
      await other.must('POST', `/chambers/${id}/propose`, { by, body: idea(by.did) });
      await other.must('POST', `/chambers/${id}/pass`, { by, body: {} });
    }
    return { first, other, ann, bob, id };
  }
  const idea = (ticker: string) => ({ name: 'Idea', ticker: ticker.slice(-8) });

  it('a move is neither rejected nor accepted on state that another node has changed', async () => {
    const { first, other, ann, bob, id } = await openDebate();
    await enterPhase(first, id, 'DEBATE');
    const post = (service: TestService, by: Signer, path: string, body: object = {}) =>
      service.request('POST', `/chambers/${id}/${path}`, { by, body });
    await post(other, ann, 'debate', { comment: 'known to the other node' });
    expect(await post(first, ann, 'pass')).toMatchObject({ status: 200 });
    expect(await post(other, bob, 'pass')).toMatchObject({ status: 200 });
    expect(await post(first, ann, 'pass')).toMatchObject({ status: 200 });
    expect(await post(other, ann, 'pass')).toMatchObject({ status: 403 });
  });

  it('a move may name an event that its agent has seen on another node but that this node lacks', async () => {
    const { first, other, ann, id } = await openDebate();
    const propose = (service: TestService, ticker: string, seen: object) =>
      service.request('POST', `/chambers/${id}/propose`, { by: ann, body: { ...idea(ticker), seen } });
    const newest = async () => {
      const lines = await first.lines(id);
      return { eventId: lines.length, leaf: toHex(leafHash(Buffer.from(lines.at(-1) ?? ''))) };
    };
    for (let round = 0; round < 5; round++) {
      // Each node lacks the other's move when its own arrives.
      for (const service of [first, other]) {
        const seen = await newest();
        const wrong = { ...seen, leaf: `0x${'ab'.repeat(32)}` };
        const refused = await propose(service, `NO${round}`, wrong);
        expect(refused).toMatchObject({ status: 409, body: { error: 'FORUM_ERR_HISTORY', history: seen } });
        const ticker = `${service === first ? 'P' : 'Q'}${round}`;
        expect(await propose(service, ticker, seen)).toMatchObject({ status: 200 });
      }
    }
    // Both arrive at once, so one of them is decided again after the other.
    const seen = await newest();
    const both = await Promise.all([propose(first, 'C1', seen), propose(other, 'C2', seen)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('a move is decided on the account in the log', async () => {
    const { first, other, ann, id } = await openDebate();
    const walletAddress = `0x${'cd'.repeat(20)}`;
    await first.must('POST', '/register', { by: ann, body: { ...registrationOf(ann), walletAddress } });
    await other.must('POST', `/chambers/${id}/propose`, { by: ann, body: idea('NEW') });
    expect((await first.events(id)).at(-1)).toMatchObject({ payload: { creatorWallet: walletAddress } });
  });

  it.each([1, 129])('a move whose chamber has %i unread events delays no move of another chamber', async (events) => {
    const { first, second: stale, gate, chamberIds, debate } = await openGated();
    const [behind, other] = chamberIds;
    for (const id of [behind, other]) await debate(stale, id);
    for (let event = 0; event < events; event++) await debate(first, behind);
    gate.isClosed = true;
    const late = debate(stale, behind);
    await eventually(() => expect(gate.isClosed).toBe(false));
    expect(await debate(stale, other)).toMatchObject({ eventId: 4 });
    gate.open();
    expect(await late).toMatchObject({ eventId: 4 + events });
  });

  it('a move delays no other move while its chamber is read again after many moves of another node', async () => {
    const { first, second: cold, gate, chamberIds, debate } = await openGated();
    const [busy, other] = chamberIds;
    await debate(cold, other);
    const isHeld = () => eventually(() => expect(gate.isClosed).toBe(false));
    gate.isClosed = true;
    const late = debate(cold, busy);
    await isHeld();
    for (let event = 0; event < 129; event++) await debate(first, busy);
    gate.isClosed = true;
    gate.open();
    await isHeld();
    expect(await debate(cold, other)).toMatchObject({ eventId: 4 });
    gate.open();
    expect(await late).toMatchObject({ eventId: 132 });
  });

  it('a repeated move does not affect moves in progress', async () => {
    const gate = new Gate();
    const service = new TestService({
      store: await openStore(await temporaryPostgres()),
      wrapLog: appendsThrough(gate),
    });
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    await enterPhase(service, id, 'DEBATE');
    const prepare = (comment: string) => service.prepare('POST', `/chambers/${id}/debate`, { by, body: { comment } });
    await service.send(prepare('so that it is in memory'));
    const request = prepare('hm');
    const answer = await service.send(request);
    expect(answer).toMatchObject({ status: 200, body: { eventId: 4 } });
    gate.isClosed = true;
    const held = service.send(prepare('held'));
    await eventually(() => expect(gate.isClosed).toBe(false));
    const beside = [request, prepare('beside'), request].map((each) => service.send(each));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const { open } = gate;
    gate.isClosed = true;
    open();
    await held;
    await eventually(() => expect(gate.isClosed).toBe(false));
    gate.isClosed = true;
    gate.open();
    const [replay, honest, another] = await Promise.all(beside);
    expect([replay, another].map((each) => seen(each as Answer))).toEqual([seen(answer), seen(answer)]);
    expect(honest).toMatchObject({ status: 200, body: { eventId: 6 } });
    // The append that looked up the replays has written it.
    expect(gate.isClosed).toBe(true);
    expect(await service.events(id)).toHaveLength(6);
  });

  it("a move does not wait for later moves that this node's outdated state would reject", async () => {
    const { url, clock, first } = await openNodes();
    const [ann, bob] = [await first.agent(), await first.agent()];
    const id = await openChamber(first, [ann, bob]);
    await enterPhase(first, id, 'DEBATE');
    let appends = 0;
    const answers: Promise<unknown>[] = [];
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', () => {
        if (++appends < 50) answers.push(debate().catch(() => {}));
      });
    const stale = new TestService({ store: await openStore(url), clock, wrapLog });
    const caller = { did: bob.did, request: null, signature: null, times: null };
    const debate = () =>
      stale.forum.submit({ operation: 'debate', chamberId: id, body: { json: { comment: 'hm' } }, caller });
    appends = 50;
    await stale.must('POST', `/chambers/${id}/debate`, { by: ann, body: { comment: 'known to this node' } });
    await stale.must('POST', `/chambers/${id}/pass`, { by: ann, body: {} });
    await stale.must('POST', `/chambers/${id}/pass`, { by: bob, body: {} });
    await first.must('POST', `/chambers/${id}/pass`, { by: ann, body: {} });
    appends = 0;
    // In this node's memory, it is the other agent's turn.
    expect(await debate()).toMatchObject({ did: bob.did });
    expect(appends).toBeLessThan(10);
    appends = 50;
    await Promise.all(answers);
  });

  it.each([
    ['that the node looks up first', 'NEWS'],
    ['that the node believes to be new', '\0\0\0\0'],
  ])('a retry %s does not count toward the rate limit of its agent', async (_, start) => {
    const { first, other, ann, id } = await openDebate();
    const taken = countTokens([first.composed.agentRate, other.composed.agentRate]);
    const submit = ({ forum }: TestService, ticker: string) => {
      const caller = { did: ann.did, request: null, signature: start + ticker.repeat(17), times: null };
      return forum.submit({ operation: 'propose', chamberId: id, body: { json: idea(ticker) }, caller });
    };
    const tickers = ['ONCE', 'MORE', 'THEN'];
    const events = [];
    for (const ticker of tickers) events.push(await submit(first, ticker));
    expect(await Promise.all(tickers.map((ticker) => submit(other, ticker)))).toEqual(events);
    expect(taken()).toBe(tickers.length);
  });
});

describe('a move that arrives while a batch is written', () => {
  async function openHeld({ wrapLog = (log) => log, ...options }: TestServiceOptions = {}) {
    const gate = new Gate();
    const reads: StreamId[] = [];
    const note = (stream: StreamId) => reads.push(stream);
    const wrap = (log: EventLog) =>
      actBefore(actBefore(appendsThrough(gate)(wrapLog(log)), 'readPage', note), 'lastEventId', note);
    const url = await temporaryPostgres();
    const clock = new TestClock();
    const service = new TestService({ store: await openStore(url), clock, wrapLog: wrap, ...options });
    const [ann, bob] = [await service.agent(), await service.agent()];
    const chamberId = await openChamber(service, [ann, bob]);
    await enterPhase(service, chamberId, 'DEBATE');
    const submit = (operation: 'debate' | 'pass', by: Signer, signature: string | null = null) => {
      const json = operation === 'pass' ? {} : { comment: 'hm' };
      const caller = { did: by.did, request: null, signature, times: null };
      return service.forum.submit({ operation, chamberId, body: { json }, caller });
    };
    await submit('debate', ann);
    gate.isClosed = true;
    return { gate, reads, service, url, clock, ann, bob, chamberId, submit };
  }

  it('a move that arrives while a batch is written is decided on that batch and written by the next append', async () => {
    const { gate, reads, service, ann, bob, chamberId, submit } = await openHeld();
    const signature = `\0\0\0\0${'a'.repeat(68)}`;
    const first = submit('pass', ann, signature);
    await waitSomeTurns();
    // It is the other agent's turn only after the first move.
    const others = [submit('pass', ann, signature), submit('debate', bob), submit('pass', bob), submit('debate', ann)];
    await waitSomeTurns();
    await expect(service.forum.chamber(chamberId)).resolves.toMatchObject({ state: { lastEventId: 4 } });
    reads.length = 0;
    gate.open();
    const events = await Promise.all([first, ...others]);
    expect(events.map(({ eventId }) => eventId)).toEqual([5, 5, 6, 7, 8]);
    expect(reads).toEqual([]);
    expect(await service.events(chamberId)).toHaveLength(8);
  });

  it('a move decided on an unwritten batch is decided again if another node was first', async () => {
    const { gate, service, url, clock, ann, bob, chamberId, submit } = await openHeld();
    const moves = [submit('debate', ann)];
    await waitSomeTurns();
    moves.push(submit('pass', ann), submit('debate', bob));
    const other = new TestService({ store: await openStore(url), clock });
    await other.must('POST', `/chambers/${chamberId}/debate`, { by: ann, body: { comment: 'first' } });
    gate.open();
    expect((await Promise.all(moves)).map(({ eventId }) => eventId)).toEqual([6, 7, 8]);
    await verifyChamber(service, chamberId);
  });

  it('a move stays written if another node extends the account that it was decided on', async () => {
    const lost = new Set<StreamId>();
    // The other node commits after the statement's snapshot and before its insert.
    const wrapLog = (log: EventLog) => {
      const append = async ({ entries, registrations, heads, signatures }: AppendBatch) => {
        const [did] = [...lost].filter((each) => entries.some(({ stream }) => stream === each));
        const rest = { registrations, heads, signatures };
        if (did === undefined) return log.append({ entries, ...rest });
        lost.clear();
        const result = await log.append({ entries: entries.filter(({ stream }) => stream !== did), ...rest });
        return { ...result, conflicts: new Map([...result.conflicts, [did, await log.lastEventId(did)] as const]) };
      };
      return withMembers(log, { append });
    };
    const { gate, service, ann, bob, chamberId, submit } = await openHeld({ wrapLog });
    const before = submit('debate', ann);
    await waitSomeTurns();
    lost.add(ann.did);
    const move = submit('pass', ann);
    const caller = { did: ann.did, request: null, signature: null, times: null };
    const change = service.forum.submit({
      operation: 'changePersonality',
      body: { json: { patch: { style: 'dry' } } },
      caller,
    });
    gate.open();
    expect((await Promise.all([before, move])).map(({ eventId }) => eventId)).toEqual([5, 6]);
    expect(await change).toMatchObject({ payload: { patch: { style: 'dry' } } });
    expect(lost.size).toBe(0);
    expect(await submit('debate', bob)).toMatchObject({ eventId: 7 });
    await verifyChamber(service, chamberId);
  });

  it('a move decided on an unwritten batch is decided again if that batch fails', async () => {
    let isBroken = false;
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', async () => {
        if (!isBroken) return;
        await waitSomeTurns();
        isBroken = false;
        throw new ForumError('FORUM_ERR_UNAVAILABLE', 'broken');
      });
    const { gate, service, ann, bob, chamberId, submit } = await openHeld({ wrapLog });
    gate.isClosed = false;
    isBroken = true;
    const lost = submit('pass', ann);
    const refused = lost.catch((error: unknown) => error);
    await new Promise(setImmediate);
    const onTop = submit('debate', bob);
    const beside = submit('debate', ann);
    await expect(onTop).rejects.toMatchObject({ code: 'FORUM_ERR_TURN' });
    expect(await refused).toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
    expect(await beside).toMatchObject({ eventId: 5 });
    await verifyChamber(service, chamberId);
  });
});

describe('a move based on its agent’s account', () => {
  it('a move names an account event that is in the log, however the nodes compete for the account', async () => {
    const { nodes, first, clock } = await openNodes();
    const by = await first.agent();
    const id = await openChamber(first, [by]);
    await enterPhase(first, id, 'PROPOSAL');
    for (let round = 0; round < 40; round++) {
      const wallet = (node: number) => ({
        ...registrationOf(by),
        walletAddress: `0x${String(round * NODES + node).padStart(40, '1')}`,
      });
      const work = nodes.flatMap((service, node) => [
        service.request('POST', '/register', { by, body: wallet(node) }),
        service.request('POST', `/chambers/${id}/propose`, { by, body: { name: 'Idea', ticker: `T${round}.${node}` } }),
        service.request('POST', '/chambers', { by, body: { name: 'Other', ...deadlinesFrom(clock.read()) } }),
      ]);
      expect((await Promise.all(work)).filter(({ status }) => status !== 200)).toEqual([]);
    }
    const { ndjson } = await first.log.readPage(by.did, 0, 10_000);
    const account = ndjson
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const proposals = (await first.events(id)).filter((event) => event.type === 'chamber.proposed');
    expect(proposals).toHaveLength(40 * NODES);
    for (const { ts, payload } of proposals) {
      const registration = account.slice(0, payload.accountEventId).findLast(({ type }) => type === 'agent.registered');
      expect(payload.creatorWallet).toBe(registration.payload.walletAddress);
      expect(ts >= registration.ts).toBe(true);
    }
  });
});

describe('random moves', () => {
  it('random moves through any node leave streams without gaps, with the same folds at every node', {
    timeout: 120_000,
  }, async () => {
    const { nodes, first, clock } = await openNodes();
    const random = new Random(7);
    const agents: Signer[] = [];
    for (let agent = 0; agent < 4; agent++) agents.push(await first.agent());
    const ids = [await openChamber(first, agents), await openChamber(first, agents), await openChamber(first, agents)];
    const statuses = new Set<number>();
    const accepted: [Prepared, Answer['body']][] = [];
    for (let hour = 0; hour < 5; hour++) {
      for (let burst = 0; burst < 25; burst++) {
        const requests = Array.from({ length: 12 }, () => first.prepare('POST', ...randomMove(random, ids, agents)));
        const answers = await Promise.all(requests.map((request) => random.pick(nodes).send(request)));
        for (const [index, { status, body }] of answers.entries()) {
          statuses.add(status);
          if (status === 200) accepted.push([requests[index] as Prepared, body]);
        }
      }
      clock.advance(HOUR);
    }
    expect([...statuses].sort()).toEqual([200, 403, 409]);
    const states = [];
    for (const id of ids) for (const node of nodes) states.push((await verifyChamber(node, id)).state);
    await verifyLists(
      first,
      states.filter((_, index) => index % NODES === 0),
    );
    for (let retry = 0; retry < 100; retry++) {
      const [request, body] = random.pick(accepted);
      expect((await random.pick(nodes).send(request)).body).toEqual(body);
    }
  });
});

function randomMove(random: Random, ids: readonly number[], agents: readonly Signer[]) {
  const [id, by] = [random.pick(ids), random.pick(agents)];
  const { commit, reveal } = allocationOf(id, by, {});
  const [path, body] = random.pick<readonly [string, unknown]>([
    ['debate', { comment: `${random.below(10 ** 9)}` }],
    ['debate', { comment: `${random.below(10 ** 9)}` }],
    ['propose', { name: 'Idea', ticker: `T${random.below(50)}` }],
    ['pass', {}],
    ['allocate/commit', commit],
    ['allocate/reveal', reveal],
  ]);
  return [`/chambers/${id}/${path}`, { by, body }] as const;
}
