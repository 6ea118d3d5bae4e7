// A round: chambers from their creation until their roots are on the chain, and concurrent reads.
import { Agent as Connections } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ForumClient } from '../../src/client/index.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { prepare } from '../kit/wire.ts';
import type { Work } from './figures.ts';
import { fetchOver } from './http.ts';
import type { MeasuredService } from './measured-service.ts';
import { loadPage } from './page-load.ts';
import { inParallel } from './parallel.ts';
import { clientOver, type Player, registerAgents } from './players.ts';
import { readSocket, readSource } from './streams.ts';

export interface RoundOptions {
  readonly service: MeasuredService;
  /** The seeds of agents that take part in every round. */
  readonly regulars: readonly Uint8Array[];
  /** One connection per chamber, kept open from round to round. */
  readonly kept: readonly Connections[];
  readonly pageLoadsPerRound: number;
  /** The milliseconds for which the chain is frozen, from the first phase on; 0 for no freeze. */
  readonly freezeMillis: number;
  /** Whether the chain is killed while the roots are being committed. */
  readonly isKilled: boolean;
}

/** The members of a chamber: one new agent and several regular ones. */
const MEMBERS = 4;
const IDEAS = 2;
/** The ends of the phases. */
const PHASES_HOURS = [2, 4, 6, 8, 10];
/** The time from the last deadline until the chain is killed. */
const KILL_MS = 400;
const SETTLE_MS_MAX = 120_000;
const PAGES_AT_ONCE = 4;

export async function playRound(options: RoundOptions): Promise<Work> {
  const { service, kept, pageLoadsPerRound } = options;
  const over = new AbortController();
  const { signal } = over;
  const connections = new Connections({ keepAlive: true });
  const { forum, player } = clientOver(service, connections);
  try {
    const chambers = await openChambers(options, player);
    const ids = chambers.map(({ chamberId }) => chamberId);
    const settled = Promise.all(ids.map((id, slot) => readUntilSettled(service, id, kept[slot] as Connections)));
    const leaving = Promise.all(ids.map((id) => leaveEarly(service, id, signal)));
    const newcomers = chambers.map(({ members: [newcomer] }) => newcomer as Player);
    const waiting = Promise.all(newcomers.map((each) => keepWaiting(service, each, { connections, signal })));
    // The promises may reject before they are awaited.
    for (const each of [settled, leaving, waiting]) each.catch(() => {});
    await playPhases(options, chambers);
    await within(settled, SETTLE_MS_MAX, 'chambers were not committed, or their streams did not end');
    for (const id of ids) await checkCommitted(forum, id);
    await inParallel(PAGES_AT_ONCE, pageLoadsPerRound, (at) => loadPage(service.url, ids[at % ids.length] as number));
    over.abort();
    await leaving;
    const waits = (await waiting).reduce((sum, each) => sum + each, 0);
    return { chambers: ids.length, waits, streams: STREAMS_OF_EACH * ids.length, pageLoads: pageLoadsPerRound };
  } finally {
    over.abort();
    connections.destroy();
  }
}

interface OpenChamber {
  readonly chamberId: number;
  readonly members: readonly Player[];
}

async function openChambers(
  { service, regulars, kept }: RoundOptions,
  player: (seed: Uint8Array) => Player,
): Promise<readonly OpenChamber[]> {
  const newcomers = await registerAgents(service, kept.length);
  const opening = newcomers.map((newcomer, slot) => {
    const first = slot * (MEMBERS - 1);
    const others = Array.from(
      { length: MEMBERS - 1 },
      (_, at) => regulars[(first + at) % regulars.length] as Uint8Array,
    );
    return openChamber(service, [newcomer, ...others].map(player));
  });
  return Promise.all(opening);
}

async function openChamber({ clock }: MeasuredService, members: readonly Player[]): Promise<OpenChamber> {
  const [{ agent: creator }] = members as [Player];
  const { chamberId } = await creator.createChamber({ name: 'Soak', ...deadlinesFrom(clock.read(), PHASES_HOURS) });
  for (const { agent } of members) await agent.joinChamber(chamberId);
  return { chamberId, members };
}

/** Starts each phase by setting the clock to the end of the previous one; the last step makes the roots due. */
async function playPhases({ service, freezeMillis, isKilled }: RoundOptions, chambers: readonly OpenChamber[]) {
  const thawed = freezeMillis > 0 ? service.freezeChain(freezeMillis) : undefined;
  thawed?.catch(() => {});
  const start = service.clock.read();
  for (const [index, hours] of PHASES_HOURS.entries()) {
    await service.moveClock(start + hours * HOUR);
    const play = PHASES[index];
    if (play !== undefined) await Promise.all(chambers.map(play));
  }
  if (isKilled) await sleep(KILL_MS);
  await thawed;
  if (isKilled) service.killChain();
}

const PHASES = [propose, debate, commit, reveal];

async function propose({ chamberId, members }: OpenChamber): Promise<void> {
  for (const [turn, { agent }] of members.entries()) {
    const idea = { name: `Idea ${turn}`, ticker: `T${turn}`, description: 'x'.repeat(200) };
    if (turn < IDEAS) await agent.propose(chamberId, idea);
    await agent.pass(chamberId);
  }
}

async function debate({ chamberId, members }: OpenChamber): Promise<void> {
  for (const { agent } of members) {
    await agent.debate(chamberId, { comment: 'y'.repeat(200), ideaId: 'idea-1' });
    await agent.pass(chamberId);
  }
}

async function commit({ chamberId, members }: OpenChamber): Promise<void> {
  const allocations = Array.from({ length: IDEAS }, (_, index) => ({ ideaId: `idea-${index + 1}`, bps: 5_000 }));
  await Promise.all(members.map(({ agent }) => agent.commit(chamberId, allocations)));
}

async function reveal({ chamberId, members }: OpenChamber): Promise<void> {
  await Promise.all(members.map(({ agent }) => agent.reveal(chamberId)));
}

const REPLAYS = 4;
/** The streams of a chamber that the two following functions read. */
const STREAMS_OF_EACH = 4 + REPLAYS;
const NORMAL_CLOSE = 1000;

/** Reads over a separate WebSocket, and over server-sent events on a connection that stays open: live events, then the log. */
async function readUntilSettled({ url }: MeasuredService, chamberId: number, kept: Connections): Promise<void> {
  const path = `${url}/chambers/${chamberId}/stream?after=0&end=settled`;
  const fetch = fetchOver(kept);
  const [code] = await Promise.all([readSocket(path), readSource(fetch, path)]);
  for (let replay = 0; replay < REPLAYS; replay++) await readSource(fetch, path);
  if (code !== NORMAL_CLOSE) throw new Error(`the WebSocket of chamber ${chamberId} was closed with ${code}`);
}

/** Opens two streams whose readers disconnect. */
async function leaveEarly({ url }: MeasuredService, chamberId: number, signal: AbortSignal): Promise<void> {
  const path = `${url}/chambers/${chamberId}/stream?after=0`;
  await Promise.allSettled([readSocket(path, { signal }), readSource(fetchOver(new Connections()), path, { signal })]);
}

const WAIT_SECONDS = [1, 5, 20];

/** Waits repeatedly, aborting the last wait, and returns the number of responses. */
async function keepWaiting(
  { url, clock }: MeasuredService,
  { signer }: Player,
  { connections, signal }: { readonly connections: Connections; readonly signal: AbortSignal },
): Promise<number> {
  const fetch = fetchOver(connections);
  for (let count = 0; ; count++) {
    const path = `/me/todo?wait=${WAIT_SECONDS[count % WAIT_SECONDS.length]}`;
    const { headers } = prepare('GET', path, { by: signer, publicUrl: url, now: clock.read() });
    try {
      const response = await fetch(url + path, { headers, signal });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    } catch (error) {
      if (signal.aborted) return count;
      throw error;
    }
  }
}

async function checkCommitted(forum: ForumClient, chamberId: number): Promise<void> {
  const { phase } = await forum.chamber(chamberId);
  const tokens = (await forum.chamberIdeas(chamberId)).filter(({ tokenAddress }) => tokenAddress !== null).length;
  if (phase !== 'COMMITTED' || tokens !== IDEAS)
    throw new Error(`chamber ${chamberId} is ${phase} with ${tokens} tokens`);
}

async function within(work: Promise<unknown>, millis: number, problem: string): Promise<void> {
  const timer = new AbortController();
  const isLate = sleep(millis, true, { signal: timer.signal }).catch(() => false);
  const isInTime = work.then(() => false);
  if (await Promise.race([isInTime, isLate])) throw new Error(problem);
  timer.abort();
}
