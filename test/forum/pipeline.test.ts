// The invariants of the pipeline, one by one, on a real log whose appends are delayed or fail, and which a second forum also
// extends, like another process.
import { describe, expect, it } from 'vitest';
import type { EventLog } from '../../src/log/log.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { ForumError } from '../../src/vocabulary/errors.ts';
import type { ForumEvent } from '../../src/vocabulary/events.ts';
import { deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { TestClock } from '../kit/clock.ts';
import { actBefore, countTokens, Gate, withMembers } from '../kit/members.ts';
import { Random } from '../kit/random.ts';
import type { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, registrationOf, TestService, type TestServiceOptions } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';
import { verifyChamber } from '../kit/verify-chamber.ts';
import { newSignatureKey } from '../log/entries.ts';

/** Opens two forums on one log. Each learns of the other's events only through its own appends and reads. */
function openBoth({ wrapLog = (log) => log, ...options }: TestServiceOptions = {}) {
  const store = openSqliteStore(':memory:');
  const clock = new TestClock();
  const service = new TestService({ store, clock, wrapLog, ...options });
  const other = new TestService({ store: { ...store, close: async () => {} }, clock, ...options });
  return { store, clock, service, other };
}

/** A chamber in DEBATE, in the memory of both forums. Ann has the turn, then Bob. Appends of the first forum wait at the gate. */
async function inDebate({ wrapLog = (log) => log, ...options }: TestServiceOptions = {}) {
  const gate = new Gate();
  const both = openBoth({ ...options, wrapLog: (log) => actBefore(wrapLog(log), 'append', gate.pass) });
  const { service, other } = both;
  const [ann, bob] = [await service.agent(), await service.agent()];
  const chamberId = await openChamber(service, [ann, bob]);
  await enterPhase(service, chamberId, 'DEBATE');
  const submit = (
    at: TestService,
    operation: 'debate' | 'pass' | 'join',
    by: Signer,
    signature: string | null = null,
  ) => {
    const json = operation === 'debate' ? { comment: 'hm' } : {};
    const caller = { did: by.did, request: null, signature, times: null };
    return at.forum.submit({ operation, chamberId, body: { json }, caller });
  };
  // Both forums have the chamber and its agents in memory, at event 4.
  await submit(service, 'debate', ann);
  for (const by of [ann, bob]) await other.must('GET', '/me', { by });
  await other.must('GET', `/chambers/${chamberId}`);
  const isHeld = () => eventually(() => expect(gate.isClosed).toBe(false));
  /** Resolves with the move once its append is waiting at the gate. The next append will wait, too. */
  const hold = async <Result>(move: () => Promise<Result>) => {
    gate.isClosed = true;
    const answer = outcome(move());
    await isHeld();
    return { answer };
  };
  const openGate = (isClosedAgain = false) => {
    const { open } = gate;
    gate.isClosed = isClosedAgain;
    open();
  };
  return { ...both, gate, ann, bob, chamberId, submit, hold, isHeld, openGate };
}

/** Resolves to the event or the error code. */
async function outcome<Result>(answer: Promise<Result>): Promise<Result | string> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ForumError) return error.code;
    throw error;
  }
}

const idOf = (result: ForumEvent | string | null) =>
  result === null || typeof result === 'string' ? result : result.eventId;

/** Waits for more turns of the event loop than a decision on in-memory state takes. */
async function waitSomeTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

describe('the pipeline', () => {
  it('the pipeline responds to every command exactly once', async () => {
    const random = new Random(5);
    let isFaulty = false;
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', async () => {
        for (let turns = random.below(4); isFaulty && turns > 0; turns--) await new Promise(setImmediate);
        if (isFaulty && random.chance(0.2)) throw new ForumError('FORUM_ERR_UNAVAILABLE', 'the disk is full');
      });
    const { service, other } = openBoth({ wrapLog });
    const agents = [await service.agent(), await service.agent(), await service.agent()];
    const ids = [await openChamber(service, agents), await openChamber(service, agents)];
    await enterPhase(service, ids[0] as number, 'DEBATE');
    isFaulty = true;
    const answers = new Map<string, string[]>();
    const underWay: Promise<void>[] = [];
    const send = (at: TestService, name: string) => {
      const by = random.pick(agents);
      const caller = { did: by.did, request: null, signature: newSignatureKey(), times: null };
      const body = { json: { comment: name } };
      const own: string[] = [];
      answers.set(name, own);
      const move = at.forum.submit({ operation: 'debate', chamberId: random.pick(ids), body, caller });
      underWay.push(
        move.then(
          () => void own.push('accepted'),
          (error) => void own.push(error instanceof ForumError ? error.code : String(error)),
        ),
      );
      if (random.chance(0.3)) {
        const create = { name, ...deadlinesFrom(service.clock.read()) };
        underWay.push(
          at.forum
            .submit({ operation: 'createChamber', body: { json: create }, caller: { ...caller, signature: null } })
            .then(
              () => {},
              () => {},
            ),
        );
      }
    };
    for (let move = 0; move < 600; move++) {
      send(random.pick([service, service, other]), `move ${move}`);
      if (random.chance(0.3)) await new Promise(setImmediate);
    }
    let answered = 0;
    for (const each of underWay) void each.then(() => answered++);
    await Promise.all([service.forum.close(), other.forum.close()]);
    await Promise.resolve();
    expect(answered).toBe(underWay.length);
    expect(await outcome(service.forum.submit({ operation: 'record', chamberId: 1, fact: {} as never }))).toBe(
      'FORUM_ERR_UNAVAILABLE',
    );
    const written = new Map<string, number>();
    for (const id of ids) {
      for (const { type, payload } of await service.events(id)) {
        if (type === 'chamber.debated') written.set(payload.comment, (written.get(payload.comment) ?? 0) + 1);
      }
    }
    const counts = new Map<string, number>();
    for (const [name, [answer = 'none', ...more]] of answers) {
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
      expect([name, more, written.get(name) ?? 0]).toEqual([name, [], Number(answer === 'accepted')]);
    }
    // Every kind of response occurred.
    expect([...counts.keys()].toSorted()).toEqual(['FORUM_ERR_TURN', 'FORUM_ERR_UNAVAILABLE', 'accepted']);
  });

  it('each command is decided on the state after all earlier decisions, written or not', async () => {
    const { gate, service, ann, bob, submit, hold, isHeld, openGate, chamberId } = await inDebate();
    const { answer } = await hold(() => submit(service, 'pass', ann));
    const moves = [
      submit(service, 'debate', ann),
      submit(service, 'debate', bob),
      submit(service, 'pass', bob),
      submit(service, 'debate', bob),
      submit(service, 'debate', ann),
    ].map(outcome);
    await waitSomeTurns();
    openGate(true);
    expect(idOf(await answer)).toBe(5);
    await isHeld();
    openGate(true);
    expect((await Promise.all(moves)).map(idOf)).toEqual(['FORUM_ERR_TURN', 6, 7, 'FORUM_ERR_TURN', 8]);
    // No command was decided again, because that would have taken a third append.
    expect(gate.isClosed).toBe(true);
    await verifyChamber(service, chamberId);
  });

  it('the pipeline writes and rejects only what it decided on the heads of the streams', async () => {
    const { service, other, ann, bob, submit, chamberId } = await inDebate();
    expect(idOf(await submit(other, 'debate', ann))).toBe(5);
    // In the memory of the first forum, the chamber ends at event 4.
    expect(idOf(await submit(service, 'debate', ann))).toBe(6);
    expect(idOf(await submit(service, 'pass', ann))).toBe(7);
    // In the memory of the second forum it is Ann's turn, but the forum neither rejects Bob because of this nor accepts Ann.
    expect(idOf(await outcome(submit(other, 'debate', bob)))).toBe(8);
    expect(idOf(await submit(service, 'pass', bob))).toBe(9);
    expect(idOf(await submit(service, 'pass', ann))).toBe(10);
    expect(idOf(await submit(service, 'pass', bob))).toBe(11);
    const moves = [submit(other, 'debate', bob), submit(other, 'debate', ann)].map(outcome);
    expect((await Promise.all(moves)).map(idOf)).toEqual(['FORUM_ERR_TURN', 12]);
    await verifyChamber(service, chamberId);
    await verifyChamber(other, chamberId);
  });

  it('commands on a stream that has grown are decided again, followed by the open batch', async () => {
    const { service, other, ann, bob, submit, hold, openGate, chamberId } = await inDebate();
    const { answer } = await hold(() => submit(service, 'pass', ann));
    const onTop = [submit(service, 'debate', bob), submit(service, 'debate', ann)].map(outcome);
    await waitSomeTurns();
    // Ann then no longer has the turn, so her pass in flight is rejected.
    expect(idOf(await submit(other, 'pass', ann))).toBe(5);
    expect(idOf(await submit(other, 'pass', bob))).toBe(6);
    expect(idOf(await submit(other, 'pass', ann))).toBe(7);
    openGate();
    expect(await answer).toBe('FORUM_ERR_TURN');
    expect((await Promise.all(onTop)).map(idOf)).toEqual([8, 'FORUM_ERR_TURN']);
    await verifyChamber(service, chamberId);
  });

  it('a failed append rejects its commands, and the open batch is decided again without them', async () => {
    let isBroken = false;
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', () => {
        if (!isBroken) return;
        isBroken = false;
        throw new ForumError('FORUM_ERR_UNAVAILABLE', 'the disk is full');
      });
    const { service, ann, bob, submit, hold, openGate, chamberId } = await inDebate({ wrapLog });
    isBroken = true;
    const { answer } = await hold(() => submit(service, 'pass', ann));
    const onTop = [submit(service, 'debate', bob), submit(service, 'debate', ann), submit(service, 'pass', ann)].map(
      outcome,
    );
    await waitSomeTurns();
    openGate();
    expect(await answer).toBe('FORUM_ERR_UNAVAILABLE');
    expect((await Promise.all(onTop)).map(idOf)).toEqual(['FORUM_ERR_TURN', 5, 6]);
    await verifyChamber(service, chamberId);
  });

  it('a repeated signature gets its first response, whatever a new decision would be', async () => {
    // This node has not seen the signatures that the other node accepted.
    const wrapLog = (log: EventLog) => withMembers(log, { mayContain: () => false });
    const { service, other, ann, bob, submit, chamberId } = await inDebate({ wrapLog });
    const [debate, pass, toReject] = [newSignatureKey(), newSignatureKey(), newSignatureKey()];
    const events = [await submit(other, 'debate', ann, debate), await submit(other, 'pass', ann, pass)];
    const taken = countTokens([service.composed.agentRate]);
    // The first command is decided on an in-memory state that would accept it, the second on the head, which would reject it.
    expect([await submit(service, 'debate', ann, debate), await submit(service, 'pass', ann, pass)]).toEqual(events);
    expect(taken()).toBe(0);
    expect(await outcome(submit(service, 'pass', ann, toReject))).toBe('FORUM_ERR_TURN');
    await submit(service, 'pass', bob);
    // No event uses this signature, so this is a new command.
    expect(idOf(await submit(service, 'pass', ann, toReject))).toBe(8);
    expect(await service.events(chamberId)).toHaveLength(8);
  });

  it('a repeated registration gets its first response, although it would undo a later change', async () => {
    const { service, other } = openBoth();
    const by = await service.agent();
    const register = (at: TestService, style: string, signature: string) => {
      const json = { ...registrationOf(by), personality: { style } };
      const caller = { did: by.did, request: null, signature, times: null };
      return at.forum.submit({ operation: 'register', body: { json }, caller, services: [] });
    };
    const [first, second, unchanged] = ['a', 'b', 'c'].map((letter) => letter.repeat(32)) as [string, string, string];
    const [dry, wet] = [await register(service, 'dry', first), await register(other, 'wet', second)];
    expect(await register(service, 'wet', unchanged)).toBeNull();
    expect([await register(service, 'dry', first), await register(service, 'wet', second)]).toEqual([dry, wet]);
    await register(other, 'dry', 'd'.repeat(32));
    // The registration changed nothing the first time and changes nothing now, so the response is the existing one.
    expect(await register(service, 'wet', unchanged)).toEqual(wet);
    expect((await service.forum.account(by.did))?.state).toMatchObject({
      lastEventId: 4,
      personality: { style: 'dry' },
    });
  });

  it('concurrent requests with the same signature yield one event', async () => {
    const { service, ann, submit, hold, openGate, chamberId } = await inDebate();
    const [one, another] = [newSignatureKey(), newSignatureKey()];
    const { answer } = await hold(() => submit(service, 'pass', ann, one));
    // The command in flight would be rejected if it were decided again.
    const twins = [one, one].map((signature) => submit(service, 'pass', ann, signature));
    const rejected = outcome(submit(service, 'pass', ann, another));
    openGate();
    expect(await Promise.all([answer, ...twins])).toEqual(Array(3).fill(await answer));
    expect([idOf(await answer), await rejected]).toEqual([5, 'FORUM_ERR_TURN']);
    expect(await service.events(chamberId)).toHaveLength(5);
  });

  it('a signature that may be in the log is looked up separately, and other moves do not wait', async () => {
    const appended: number[] = [];
    const wrapLog = (log: EventLog) => actBefore(log, 'append', ({ entries }) => appended.push(entries.length));
    const { service, ann, submit, hold, openGate, chamberId } = await inDebate({ wrapLog });
    const signature = newSignatureKey();
    const first = await submit(service, 'debate', ann, signature);
    appended.length = 0;
    const { answer } = await hold(() => submit(service, 'debate', ann));
    const beside = submit(service, 'debate', ann);
    // This happens during the append.
    expect(await submit(service, 'debate', ann, signature)).toEqual(first);
    openGate();
    expect([idOf(await answer), idOf(await beside)]).toEqual([6, 7]);
    expect(appended).toEqual([1, 1]);
    expect(await service.events(chamberId)).toHaveLength(7);
  });

  it('a command whose signature turns out not to be in the log is decided', async () => {
    const wrapLog = (log: EventLog) => withMembers(log, { mayContain: () => true });
    const { service, ann, submit } = await inDebate({ wrapLog });
    const signature = newSignatureKey();
    const [first, twin] = await Promise.all([signature, signature].map((key) => submit(service, 'debate', ann, key)));
    expect([idOf(first as ForumEvent), twin]).toEqual([5, first]);
    expect(await submit(service, 'debate', ann, signature)).toEqual(first);
  });

  it('events are published, responses sent and readers woken after the append', async () => {
    const { service, ann, submit, hold, openGate, chamberId } = await inDebate();
    const shown = async () => (await service.forum.chamber(chamberId))?.state.lastEventId;
    const seen: string[] = [];
    service.forum.follow(chamberId, () => seen.push('woken'));
    const { answer } = await hold(() => submit(service, 'debate', ann));
    const rejected = outcome(submit(service, 'join', ann));
    void answer.then(() => seen.push('answered'));
    void rejected.then(() => seen.push('rejected'));
    await waitSomeTurns();
    expect([await shown(), seen]).toEqual([4, []]);
    openGate(true);
    await answer;
    await waitSomeTurns();
    expect([await shown(), seen.toSorted()]).toEqual([5, ['answered', 'woken']]);
    // Rejections, too, wait for an append to confirm them.
    await eventually(() => openGate());
    expect(await rejected).toBe('FORUM_ERR_PHASE');
    expect(seen.toSorted()).toEqual(['answered', 'rejected', 'woken']);
  });

  it('no event of a failed append is published, even if later commands were decided on it', async () => {
    let isBroken = false;
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', () => {
        if (isBroken) throw new ForumError('FORUM_ERR_UNAVAILABLE', 'the disk is full');
      });
    const { service, ann, submit, hold, openGate, chamberId } = await inDebate({ wrapLog });
    let wakes = 0;
    service.forum.follow(chamberId, () => wakes++);
    isBroken = true;
    const { answer } = await hold(() => submit(service, 'debate', ann));
    const onTop = outcome(submit(service, 'debate', ann));
    openGate();
    expect([await answer, await onTop]).toEqual(['FORUM_ERR_UNAVAILABLE', 'FORUM_ERR_UNAVAILABLE']);
    expect([(await service.forum.chamber(chamberId))?.state.lastEventId, wakes]).toEqual([4, 0]);
    isBroken = false;
    expect(idOf(await submit(service, 'debate', ann))).toBe(5);
  });

  it('an agent cannot exceed the limit of open chambers, even through several processes', async () => {
    const { service, other } = openBoth({ settings: { CHAMBERS_OPEN_PER_DID_MAX: '3' } });
    const agents = [await service.agent(), await service.agent()];
    const create = (at: TestService, { did }: Signer) => {
      const json = { name: 'Test', ...deadlinesFrom(at.clock.read()) };
      const caller = { did, request: null, signature: newSignatureKey(), times: null };
      return outcome(at.forum.submit({ operation: 'createChamber', body: { json }, caller }));
    };
    const creations = Array.from({ length: 5 }, () =>
      agents.flatMap((by) => [create(service, by), create(other, by)]),
    ).flat();
    const results = await Promise.all(creations);
    const created = results.flatMap((result) => (typeof result === 'string' ? [] : [result]));
    expect(created.map(({ chamberId }) => chamberId).toSorted()).toEqual([1, 2, 3, 4, 5, 6]);
    for (const { did } of agents) expect(created.filter((event) => event.did === did)).toHaveLength(3);
    expect(new Set(results.filter((result) => typeof result === 'string'))).toEqual(new Set(['FORUM_ERR_CONFLICT']));
  });

  it('decisions based on a failed append are undone, even for requests with the same signature', async () => {
    let isBroken = false;
    const wrapLog = (log: EventLog) =>
      actBefore(log, 'append', () => {
        if (!isBroken) return;
        isBroken = false;
        throw new Error('a defect');
      });
    const { service, ann, submit, hold, openGate, chamberId } = await inDebate({ wrapLog });
    const signature = newSignatureKey();
    isBroken = true;
    const { answer } = await hold(() => submit(service, 'debate', ann, signature).catch(String));
    const twin = submit(service, 'debate', ann, signature).then(idOf, String);
    openGate();
    expect([await answer, await twin]).toEqual(['Error: a defect', 5]);
    expect(service.defects.splice(0)).toEqual([new Error('a defect')]);
    expect(await service.events(chamberId)).toHaveLength(5);
  });

  it('two concurrent calls of close both resolve', async () => {
    const { service, ann, submit, hold, openGate } = await inDebate();
    const { answer } = await hold(() => submit(service, 'debate', ann));
    const closes = [service.forum.close(), service.forum.close()];
    openGate();
    expect(idOf(await answer)).toBe(5);
    await Promise.all(closes);
  });

  it('an agent’s chambers are counted again after a batch reads a chamber that another process created', async () => {
    const settings = { CHAMBERS_OPEN_PER_DID_MAX: '1' };
    const store = openSqliteStore(':memory:');
    const clock = new TestClock();
    const other = new TestService({ store: { ...store, close: async () => {} }, clock, settings });
    const [counted, appended] = [new Gate(), new Gate()];
    const countOpenChambers = async (did: string, max: number) => {
      const open = await store.lists.countOpenChambers(did, max);
      await counted.pass();
      return open;
    };
    const service = new TestService({
      store: { ...store, lists: withMembers(store.lists, { countOpenChambers }) },
      clock,
      settings,
      wrapLog: (log) => actBefore(log, 'append', appended.pass),
    });
    const [ann, bob] = [await service.agent(), await service.agent()];
    const command = ({ did }: Signer, json: Record<string, string>) => {
      return { body: { json }, caller: { did, request: null, signature: newSignatureKey(), times: null } };
    };
    const create = (at: TestService) =>
      outcome(
        at.forum.submit({
          operation: 'createChamber',
          ...command(ann, { name: 'Test', ...deadlinesFrom(clock.read()) }),
        }),
      );
    counted.isClosed = true;
    const second = create(service);
    await eventually(() => expect(counted.isClosed).toBe(false));
    const first = await create(other);
    appended.isClosed = true;
    const inFlight = service.agent();
    await eventually(() => expect(appended.isClosed).toBe(false));
    // The open batch then decides both this command and the second creation.
    const join = service.forum.submit({ operation: 'join', chamberId: 1, ...command(bob, {}) });
    await waitSomeTurns();
    counted.open();
    await waitSomeTurns();
    appended.open();
    await inFlight;
    expect([idOf(first), await second, idOf(await join)]).toEqual([1, 'FORUM_ERR_CONFLICT', 2]);
  });

  it('the caller is charged for the line of a retry and for each query of the chain', async () => {
    const { service, ann, submit } = await inDebate();
    const charges: number[] = [];
    const paying = async <Result>(act: () => Promise<Result>) => {
      charges.length = 0;
      const payer = { charge: (millis: number) => void charges.push(millis) };
      const acting = service.composed.meter.run(payer, () => outcome(act()));
      const before = charges.length;
      return { result: await acting, chargedLater: charges.slice(before) };
    };
    const signature = newSignatureKey();
    const first = await submit(service, 'debate', ann, signature);
    const retry = await paying(() => submit(service, 'debate', ann, signature));
    expect(retry.result).toEqual(first);
    expect(retry.chargedLater).not.toEqual([]);

    let questions = 0;
    service.forum.useChain({
      answer: async () => {
        questions++;
        return null;
      },
    });
    const issuedAt = new Date(service.clock.read()).toISOString();
    const { operatorEmail: _, ...content } = registrationOf(ann);
    const json = { ...content, walletSignature: '0x00', issuedAt };
    const caller = { did: ann.did, request: null, signature: newSignatureKey(), times: null };
    const services = [PUBLIC_URL];
    const register = () => service.forum.submit({ operation: 'register', body: { json }, caller, services });
    const { result, chargedLater } = await paying(register);
    expect(result).toBe('FORUM_ERR_VALIDATION');
    expect([questions, chargedLater.filter((millis) => millis === 50)]).toEqual([1, [50]]);
  });
});
