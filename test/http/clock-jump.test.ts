// The machine's clock jumps: the service decides nothing while the clock is in doubt, agents with the right time continue afterwards, and
// lines written at a wrong time are sound and wait.
import { beforeEach, describe, expect, it } from 'vitest';
import { writeWholeLog } from '../../src/log/open-log.ts';
import { resetClock } from '../../src/log/sql/maintenance.ts';
import { report, toText } from '../audit/forge.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, TestClock } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';

const DAY = 24 * HOUR;
const SECOND = 1_000;
const JUMP_SECONDS = 60;
/** Chambers that last for weeks. */
const ENDS = [1, 400, 500, 600, 700];

let path: string;
let clock: TestClock;
let service: TestService;
let ann: Signer;
let bob: Signer;

function open(): TestService {
  return new TestService({ path, clock, settings: { CLOCK_JUMP_SECONDS: String(JUMP_SECONDS) } });
}

async function createChamber(by: Signer, ends = ENDS): Promise<number> {
  const body = { name: 'Test', ...deadlinesFrom(clock.read(), ends) };
  return (await service.must('POST', '/chambers', { by, body })).chamberId;
}

/** Lets time pass; the service reads its clock every two seconds. */
function pass(millis: number): void {
  for (let left = millis; left > 0; left -= 2 * SECOND) {
    clock.advance(Math.min(left, 2 * SECOND));
    service.forum.now();
  }
}

const join = (by: Signer, id: number) => service.request('POST', `/chambers/${id}/join`, { by });
const IN_DOUBT = { status: 503, body: { error: 'FORUM_ERR_UNAVAILABLE' } };

/** Expects the alert that the test causes. */
function expectAlert(reason: RegExp): void {
  const [alert] = service.defects.splice(0);
  expect((alert as Error).message).toMatch(reason);
}

beforeEach(async () => {
  path = temporaryDatabase();
  clock = new TestClock();
  service = open();
  ann = await service.agent();
  bob = await service.agent();
});

describe.each([2 * DAY, 365 * DAY, -2 * DAY])('a clock that is wrong by %i ms for three seconds', (millis) => {
  it('a short clock jump is reported, stops only decisions, and has no lasting effect', async () => {
    const id = await createChamber(ann);
    const before = service.prepare('POST', `/chambers/${id}/join`, { by: ann });
    const first = await service.send(before);
    clock.jumpTo(millis);
    expect(await join(bob, id)).toMatchObject(IN_DOUBT);
    expectAlert(/alert raised: the clock jumped (ahead|back) by \d+ s/);
    expect(await service.send(before)).toMatchObject({ status: 200, body: first.body });
    expect(await service.request('GET', '/ready')).toMatchObject(IN_DOUBT);
    expect((await service.request('GET', '/health')).body).toMatchObject({
      ok: false,
      clock: { ok: false, aheadSeconds: millis / 1000, reason: expect.stringContaining('jumped') },
    });
    expect(service.composed.sources.clockAheadSeconds()).toBe(millis / 1000);
    expect(await service.must('GET', '/me', { by: bob })).toMatchObject({ did: bob.did });
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ phase: 'LOBBY' });
    await service.forum.persistClock();
    pass(3 * SECOND);
    clock.jumpTo(0);
    await service.must('GET', '/ready');
    expect(await service.must('GET', '/health')).toEqual({ ok: true, env: 'development', chain: null });
    expect(await join(bob, id)).toMatchObject({ status: 200 });
    await service.close();
    service = open();
    await service.must('GET', '/ready');
    await service.must('GET', '/me', { by: bob });
  });
});

describe('a wrong clock that the service has accepted', () => {
  /** Opens two chambers. One has a move from the wrong time, by an agent that used the service's time. */
  async function play() {
    const [touched, other] = [await createChamber(ann), await createChamber(ann)];
    const short = await createChamber(ann, [1, 2, 3, 4, 5]);
    clock.jumpTo(2 * DAY);
    pass((JUMP_SECONDS + 4) * SECOND);
    expectAlert(/the clock jumped ahead/);
    await service.must('GET', '/ready');
    const created = Math.floor(service.forum.now() / 1000);
    const body = { name: 'In the future', ...deadlinesFrom(service.forum.now(), ENDS) };
    const future = await service.must('POST', '/chambers', { by: bob, body, created });
    expect(await service.must('GET', `/chambers/${short}`)).toMatchObject({ phase: 'ALLOCATE_REVEAL' });
    await service.forum.persistClock();
    clock.jumpTo(0);
    pass((JUMP_SECONDS + 4) * SECOND);
    service.defects.length = 0;
    return { touched, other, short, future: future.chamberId as number };
  }

  it('a wrong clock that the service has accepted stops decisions until reset-clock; then chambers without events in the future continue', async () => {
    const { touched, other, short, future } = await play();
    expect(await join(bob, touched)).toMatchObject(IN_DOUBT);
    expect((await service.request('GET', '/ready')).body.detail).toMatch(/17\d{4} s behind the log.*reset-clock/);
    await service.close();
    const { waiting } = await reset();
    expect(waiting.map(({ stream }) => stream)).toEqual([future]);
    service = open();
    await service.must('GET', '/ready');
    expect(await join(bob, touched)).toMatchObject({ status: 200 });
    expect(await join(ann, other)).toMatchObject({ status: 200 });
    expect(await service.must('GET', `/chambers/${short}`)).toMatchObject({ phase: 'LOBBY' });
    expect(await service.must('GET', '/chambers?phase=LOBBY')).toHaveLength(4);
    const waits = await join(ann, future);
    expect(waits).toMatchObject(IN_DOUBT);
    expect(waits.body.detail).toContain(`chamber ${future} is in the future`);
    pass(2 * DAY);
    expect(await service.request('POST', `/chambers/${other}/pass`, { by: ann })).toMatchObject({ status: 200 });
  });

  it('a wrong clock that the service has accepted leaves lines that the auditor calls sound', async () => {
    const { touched, future } = await play();
    await service.close();
    await reset();
    service = open();
    await join(bob, touched);
    for (const id of [touched, future]) {
      const text = toText(await service.lines(id));
      expect((await report(text)).sentence).toBe('Sound.');
    }
  });

  it('a wrong clock that the service has accepted allows decisions once the log is no longer in the future, and keeps its time after a restart', async () => {
    const { future } = await play();
    await service.close();
    service = open();
    expectAlert(/behind the log/);
    pass(2 * DAY);
    await service.must('GET', '/ready');
    expect((await join(ann, future)).body.error).not.toBe('FORUM_ERR_UNAVAILABLE');
  });
});

it('reset-clock rejects a log whose time is not in the future', async () => {
  await service.close();
  await expect(reset()).rejects.toThrow(/not in the future/);
});

function reset() {
  return writeWholeLog(path, (log) => resetClock(log, clock.read()));
}
