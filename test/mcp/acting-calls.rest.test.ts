// Tools that are safe to repeat: if a call is cancelled at any time and repeated, it results in one event and the same result.
import { expect, it } from 'vitest';
import { deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { Random } from '../kit/random.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { CALL_MILLIS_MAX, CUT, idea, inTurn, type Network, PACE, TURN_MILLIS, through } from './cut-calls.ts';
import { openSeat, type Played, type TestSeat } from './seat-in-process.ts';

/** ACTING_CUTS=500 cancels this many calls. */
const CUTS = Number(process.env['ACTING_CUTS'] ?? 25);
/** The time on a loaded machine. */
const CUT_MILLIS_MAX = 6_000;
const CUTS_PER_SERVICE = 25;
/** The event between the call and its repetition. */
const MEANWHILE = ['nothing', 'a restart', 'the turn ends', 'a restart, and the turn ends', 'the phase ends'] as const;

interface Tool {
  readonly name: string;
  /** Arguments besides the chamber's id. */
  readonly args: object;
  /** The events that one call creates. */
  readonly events: readonly string[];
  /** Prepares the chamber so that the tool can be called. */
  readonly prepare: (played: Played) => Promise<void>;
}

const idle = async () => {};

const TOOLS: readonly Tool[] = [
  { name: 'open', args: { name: 'New' }, events: ['chamber.created'], prepare: idle },
  { name: 'join', args: {}, events: ['chamber.joined'], prepare: idle },
  { name: 'propose', args: idea, events: ['chamber.proposed'], prepare: inTurn('PROPOSAL') },
  {
    name: 'propose',
    args: { ...idea, pass: true },
    events: ['chamber.proposed', 'chamber.passed'],
    prepare: inTurn('PROPOSAL'),
  },
  { name: 'pass', args: {}, events: ['chamber.passed'], prepare: inTurn('PROPOSAL') },
  {
    name: 'debate',
    args: { comment: 'hm', ideaId: 'ONE', stance: 'for' },
    events: ['chamber.debated'],
    prepare: inTurn('DEBATE'),
  },
  {
    name: 'debate',
    args: { comment: 'hm', pass: true },
    events: ['chamber.debated', 'chamber.passed'],
    prepare: inTurn('DEBATE'),
  },
  {
    name: 'allocate',
    args: { allocations: [{ ideaId: 'ONE', bps: '4000' }] },
    events: ['allocation.committed'],
    prepare: async (played) => {
      await inTurn('PROPOSAL')(played);
      await enterPhase(played.seat.service, played.chamberId, 'ALLOCATE_COMMIT');
    },
  },
];

/**
 * On a slow machine the test's short time limit cancels calls that nothing else cancels; a second server of the seat has a longer limit.
 */
async function outcomeOf({ call, service, folder }: TestSeat, name: string, args: object) {
  const result = await call(name, args);
  if (result.error !== 'CLIENT_ERR_UNREACHABLE') return result;
  const patient = await openSeat({ service, folder });
  const outcome = await patient.call(name, args);
  await patient.close();
  return outcome;
}

async function eventsBy({ service, did }: TestSeat, chamberId: number, after: number) {
  return (await service.events(chamberId)).slice(after).filter((event) => event.did === did);
}

it(`an acting call that is cancelled ${CUTS} times creates one event and returns the same result`, {
  timeout: CUTS * CUT_MILLIS_MAX,
}, async () => {
  const random = new Random(40);
  const seen = new Set<string>();
  let service = new TestService();
  for (let n = 0; n < CUTS; n++) {
    if (n % CUTS_PER_SERVICE === 0) service = new TestService();
    const tool = random.pick(TOOLS);
    const [cut, meanwhile] = [random.pick(CUT), random.pick(MEANWHILE)];
    const title = `${n}: ${tool.name} cut off ${cut}, then ${meanwhile}`;
    const network: Network = { cut: 'nowhere', accepted: 0 };
    const folder = temporaryFolder();
    const open = () =>
      openSeat({ service, folder, callMillisMax: CALL_MILLIS_MAX, network: (fetch) => through(network, fetch) });
    let seat = await open();
    const other = await service.agent();
    const members = { ...deadlinesFrom(service.clock.read()), ...PACE };
    const chamberId = await openChamber(service, [other], members);
    if (tool.name !== 'join' && tool.name !== 'open') await outcomeOf(seat, 'join', { chamberId });
    // With a third member, an expired turn does not come round again.
    await service.must('POST', `/chambers/${chamberId}/join`, { by: await service.agent() });
    await tool.prepare({ seat, other, chamberId });

    const args = tool.name === 'open' ? tool.args : { chamberId, ...tool.args };
    const created = async () => (await service.must('GET', '/chambers?limit=200')).length;
    const [eventsBefore, chambersBefore] = [(await service.events(chamberId)).length, await created()];
    const left = async () =>
      tool.name === 'open'
        ? Array((await created()) - chambersBefore).fill('chamber.created')
        : (await eventsBy(seat, chamberId, eventsBefore)).map(({ type }) => type);

    network.cut = cut;
    network.accepted = 0;
    const caller = new AbortController();
    const isCancelled = cut === 'by the caller' || cut === 'by the caller, after it';
    const first = seat.call(tool.name, args, isCancelled ? caller.signal : undefined).catch(() => 'cut off');
    if (cut === 'by the caller') setTimeout(() => caller.abort(), random.below(8));
    // On a slow machine the call may end before the service has accepted anything.
    let isOver = false;
    void first.then(() => {
      isOver = true;
    });
    if (cut === 'by the caller, after it') while (network.accepted === 0 && !isOver) await new Promise(setImmediate);
    caller.abort();
    const result = await first;
    const isComplete = async () => (await left()).length === tool.events.length;
    // The work of a cancelled call continues briefly.
    if (isCancelled) await seat.call('whoami');
    network.cut = 'nowhere';
    const wasComplete = await isComplete();

    if (meanwhile.includes('restart')) {
      await seat.close();
      seat = await open();
    }
    if (meanwhile.includes('turn ends')) service.clock.advance(TURN_MILLIS);
    if (meanwhile === 'the phase ends') service.clock.advance(HOUR);
    const again = await outcomeOf(seat, tool.name, args);

    const isReceived = typeof result === 'object' && result.error === undefined;
    if (isReceived && meanwhile === 'the phase ends' && again.error !== undefined) {
      // The caller has the result, so this is a new call, and it is too late.
      expect(again.error, title).toMatch(/FORUM_ERR_(PHASE|TURN)/);
      expect(await left(), title).toEqual(tool.events);
    } else if (again.error === undefined) {
      // A turn that has ended in the meantime needs no pass.
      const isEnded = again.passed === false && /ends/.test(meanwhile);
      expect(await left(), title).toEqual(isEnded ? tool.events.slice(0, 1) : tool.events);
    } else {
      // The request never reached the service in time, so either nothing was made, or everything except the pass.
      expect(wasComplete, `${title}: ${JSON.stringify(again)}`).toBe(false);
      expect(tool.events.slice(0, 1), title).toEqual(expect.arrayContaining([...new Set(await left())]));
      expect(meanwhile, title).toMatch(/ends/);
      expect(again.error, title).toMatch(/FORUM_ERR_(PHASE|TURN)/);
    }
    if (isReceived && again.error === undefined) {
      const { repeated: _, ...same } = again;
      expect(same, title).toEqual(result);
      expect(again.repeated, title).toBe(true);
    }
    seen.add(`${tool.name} ${cut}`).add(`${cut} ${meanwhile}`);
    await seat.close();
  }
  expect(seen.size).toBeGreaterThan(Math.min(60, CUTS / 2));
});
