// The forum decides commands in order, appends them in one transaction, and responds once they are on disk. Its time never goes back.
import { describe, expect, it } from 'vitest';
import type { EventLog, LogEntry } from '../../src/log/log.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { ForumError } from '../../src/vocabulary/errors.ts';
import { deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR, START } from '../kit/clock.ts';
import { actBefore, withMembers } from '../kit/members.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { PUBLIC_URL, TestService } from '../kit/test-service.ts';

/** Wraps the log with a hook before each append and each read of a page. */
function beforeAppend(
  append: (entries: readonly LogEntry[]) => Promise<void>,
  read: (stream: StreamId) => Promise<void> = async () => {},
) {
  return (log: EventLog): EventLog =>
    actBefore(
      actBefore(log, 'append', ({ entries }) => append(entries)),
      'readPage',
      (stream) => read(stream),
    );
}

async function inDebate(service: TestService) {
  const by = await service.agent();
  const id = await openChamber(service, [by, await service.agent()]);
  await enterPhase(service, id, 'DEBATE');
  const debate = () => service.request('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
  return { by, id, debate };
}

describe('group commit', () => {
  it('concurrent commands are written in few transactions, with consecutive ids', async () => {
    const batches: number[] = [];
    const service = new TestService({ wrapLog: beforeAppend(async ({ length }) => void batches.push(length)) });
    const { id, debate } = await inDebate(service);
    batches.length = 0;
    const answers = await Promise.all(Array.from({ length: 50 }, debate));
    expect(new Set(answers.map(({ body }) => body.eventId))).toEqual(
      new Set(Array.from({ length: 50 }, (_, at) => at + 4)),
    );
    expect(batches.length).toBeLessThan(25);
    expect((await service.events(id)).map(({ eventId }) => eventId)).toEqual(
      Array.from({ length: 53 }, (_, at) => at + 1),
    );
  });

  it('no response is sent and no state is shown before the append has resolved', async () => {
    let release: (() => void) | undefined;
    let isHeld = false;
    const hold = async () => {
      if (isHeld)
        await new Promise<void>((resolve) => {
          release = resolve;
        });
    };
    const service = new TestService({ wrapLog: beforeAppend(hold) });
    const { id, debate } = await inDebate(service);
    const preview = () => service.must('GET', `/chambers/${id}/merkle-preview`);
    const earlier = await preview();
    isHeld = true;
    let isAnswered = false;
    const answer = debate().finally(() => {
      isAnswered = true;
    });
    await expect.poll(() => release).toBeDefined();
    expect([isAnswered, await preview()]).toEqual([false, earlier]);
    release?.();
    expect((await answer).status).toBe(200);
    expect(await preview()).toMatchObject({ eventCount: earlier.eventCount + 1 });
  });

  it('a failed append rejects only its own commands, and a command waiting for its streams is committed', async () => {
    const path = temporaryDatabase();
    const before = new TestService({ path });
    const [warm, cold] = [await before.agent(), await before.agent()];
    const [warmId, coldId] = [await openChamber(before, [warm]), await openChamber(before, [cold])];
    await before.close();
    let hasFailed = () => {};
    const failure = new Promise<void>((resolve) => {
      hasFailed = resolve;
    });
    const failFor = async ([first]: readonly LogEntry[]) => {
      if (first?.stream !== warmId) return;
      hasFailed();
      throw new ForumError('FORUM_ERR_UNAVAILABLE', 'the disk is full');
    };
    // The cold chamber is folded only after the append of the warm one has failed.
    const fold = (stream: StreamId) => (stream === coldId ? failure : Promise.resolve());
    const wrapLog = beforeAppend(failFor, fold);
    const service = new TestService({ path, clock: before.clock, wrapLog });
    await service.must('GET', `/chambers/${warmId}`);
    await service.must('GET', '/me', { by: warm });
    await enterPhase(service, warmId, 'DEBATE');
    const debate = (by: Signer, id: number) =>
      service.request('POST', `/chambers/${id}/debate`, { by, body: { comment: 'hm' } });
    const answers = await Promise.all([debate(warm, warmId), debate(cold, coldId)]);
    expect(answers.map(({ status }) => status)).toEqual([503, 200]);
    expect([await service.log.lastEventId(warmId), await service.log.lastEventId(coldId)]).toEqual([2, 3]);
  });

  it('each command is decided on the state after the preceding commands of its batch', async () => {
    const service = new TestService();
    const by = await service.agent();
    const agents = await Promise.all(Array.from({ length: 5 }, () => service.agent()));
    const id = await openChamber(service, [by]);
    const joins = await Promise.all(agents.map((agent) => service.must('POST', `/chambers/${id}/join`, { by: agent })));
    expect(joins.map(({ turnOrder }) => turnOrder).sort()).toEqual([1, 2, 3, 4, 5]);
    await enterPhase(service, id, 'PROPOSAL');
    const propose = (ticker: string) =>
      service.request('POST', `/chambers/${id}/propose`, { by, body: { name: 'Idea', ticker } });
    const proposals = await Promise.all(['ABC', 'abc', 'Abc'].map(propose));
    expect(proposals.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it('chambers created concurrently get distinct ids', async () => {
    const service = new TestService();
    const by = await service.agent();
    const body = { name: 'Test', ...deadlinesFrom(START) };
    const made = await Promise.all(Array.from({ length: 10 }, () => service.must('POST', '/chambers', { by, body })));
    expect(made.map(({ chamberId }) => chamberId).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 10 }, (_, at) => at + 1),
    );
  });
});

describe('a cache for one chamber and one account', () => {
  it('with a cache for one chamber and one account, evicted states are folded again, even within a batch', async () => {
    const service = new TestService({ settings: { STATE_CACHE_BYTES_MAX: '5000' } });
    const agents = await Promise.all(Array.from({ length: 6 }, () => service.agent()));
    const ids: number[] = [];
    for (const agent of agents) ids.push(await openChamber(service, [agent]));
    await enterPhase(service, ids[0] as number, 'DEBATE');
    for (const eventId of [3, 4]) {
      const moves = agents.map((by, at) =>
        service.must('POST', `/chambers/${ids[at]}/debate`, { by, body: { comment: 'hm' } }),
      );
      expect(await Promise.all(moves)).toEqual(agents.map(() => ({ eventId })));
    }
  });

  it('with a cache for one chamber, many concurrent readers are served', async () => {
    const service = new TestService({ settings: { STATE_CACHE_BYTES_MAX: '5000' } });
    const agents = await Promise.all(Array.from({ length: 6 }, () => service.agent()));
    const ids: number[] = [];
    for (const agent of agents) ids.push(await openChamber(service, [agent]));
    for (let round = 0; round < 5; round++) {
      const views = ids.map((id) => service.must('GET', `/chambers/${id}`));
      const accounts = agents.map((by) => service.must('GET', '/me', { by }));
      expect((await Promise.all(views)).map(({ chamberId }) => chamberId)).toEqual(ids);
      expect((await Promise.all(accounts)).map(({ did }) => did)).toEqual(agents.map(({ did }) => did));
    }
  });
});

describe('the service’s time', () => {
  it('times in the log never decrease when the clock is set back', async () => {
    const service = new TestService();
    const { id, debate } = await inDebate(service);
    service.clock.advance(1_000);
    await debate();
    const newest = service.clock.read();
    service.clock.set(newest - 10_000);
    expect((await debate()).status).toBe(200);
    const times = (await service.events(id)).map(({ ts }) => ts);
    expect(times).toEqual([...times].sort());
    expect(times.at(-1)).toBe(new Date(newest).toISOString());
  });

  it('the service’s time decides whether a signature has expired, whatever the clock shows', async () => {
    const service = new TestService();
    const { by, id, debate } = await inDebate(service);
    await debate();
    const path = `/chambers/${id}/debate`;
    const body = JSON.stringify({ comment: 'hm' });
    service.clock.advance(-20_000);
    const created = service.clock.seconds;
    const signed = (seconds: number) =>
      by.sign({ method: 'POST', url: PUBLIC_URL + path, body, created, expires: created + seconds });
    const send = (seconds: number) =>
      service.send({ method: 'POST', path, body, headers: { 'content-type': 'application/json', ...signed(seconds) } });
    expect(await send(20)).toMatchObject({
      status: 401,
      body: { detail: expect.stringContaining('the signature has expired') },
    });
    expect(await send(21)).toMatchObject({ status: 200 });
  });

  it('a phase is never reopened after its end was read or written', async () => {
    const service = new TestService();
    const { id } = await inDebate(service);
    await service.must('GET', `/chambers/${id}`);
    const other = await service.agent();
    service.clock.advance(-20_000);
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ phase: 'DEBATE' });
    const join = await service.request('POST', `/chambers/${id}/join`, { by: other });
    expect(join.body.error).toBe('FORUM_ERR_PHASE');
  });

  it('after a restart the time is not before the newest event', async () => {
    const path = temporaryDatabase();
    const service = new TestService({ path });
    const { id, debate } = await inDebate(service);
    await debate();
    await service.close();
    service.clock.advance(-20_000);
    const again = new TestService({ path, clock: service.clock });
    expect(await again.must('GET', `/chambers/${id}`)).toMatchObject({ phase: 'DEBATE' });
  });

  it('a move is not dated before the account event that it names, even if a different clock dated that', async () => {
    const path = temporaryDatabase();
    const service = new TestService({ path });
    const ann = await service.agent();
    const { state } = (await service.forum.account(ann.did)) ?? {};
    await service.close();
    service.clock.advance(-1_000);
    const store = openSqliteStore(path);
    const late = { ...store, meta: withMembers(store.meta, { lastAt: 0 }) };
    const other = new TestService({ store: late, clock: service.clock });
    await openChamber(other, [ann]);
    const events = await other.events(1);
    expect(events.map(({ payload }) => payload)).toMatchObject([{ accountEventId: 1 }, { accountEventId: 1 }]);
    expect(events.map(({ ts }) => Date.parse(ts))).toEqual([state?.lastAt, state?.lastAt]);
  });

  it('the time is correct immediately after a pause of many hours', async () => {
    const service = new TestService();
    const { id } = await inDebate(service);
    service.clock.advance(100 * HOUR);
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({
      phase: 'ALLOCATE_REVEAL',
      currentTurnAgent: null,
    });
  });
});

describe('the limits', () => {
  it('the configured limits apply', async () => {
    const service = new TestService({ settings: { MEMBERS_MAX: '1', IDEAS_MAX: '1', CHAMBERS_OPEN_PER_DID_MAX: '1' } });
    const by = await service.agent();
    const id = await openChamber(service, [by]);
    const second = await service.request('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(START) } });
    const join = await service.request('POST', `/chambers/${id}/join`, { by: await service.agent() });
    expect([second.body.error, join.body.error]).toEqual(['FORUM_ERR_CONFLICT', 'FORUM_ERR_CONFLICT']);
  });
});
