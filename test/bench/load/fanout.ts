// Live consumers of one chamber, and the posters of its moves, in one process: both ends of a delivery share a clock.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Latencies, latenciesOf } from '../figures.ts';
import { type Agent, signedRequest } from './agents.ts';
import { describeAnswer, lobbyFromNow, openChamber, untilDebate } from './chambers.ts';
import { Connection } from './connection.ts';
import { Deliveries } from './deliveries.ts';
import { subscribe } from './subscriber.ts';

export interface FanoutTask {
  readonly kind: 'fanout';
  readonly authority: string;
  /** The node that the consumers connect to; by default, the posters' node. */
  readonly consumersAt?: string;
  readonly consumers: number;
  /** Each poster sends one move after another, as fast as the responses come; bursts follow each other. */
  readonly bursts: readonly { readonly posters: number; readonly movesEach: number }[];
  /** The moves after the bursts, one every `everyMillis`, or later if the previous one has no response yet. */
  readonly pacedMoves: number;
  readonly everyMillis: number;
}

export interface FanoutResult {
  /** The rate of each burst, until every consumer has received all of it. */
  readonly deliveriesPerSecond: readonly number[];
  /** The times from sending a paced move until each consumer has received all of it. */
  readonly latency: Latencies;
  /** The times from the response to a move until its delivery; 0 if the delivery came first. */
  readonly wakeUp: Latencies;
}

const WARM_UP_MOVES = 60;
/** The maximum number of concurrent handshakes. */
const HANDSHAKES_MAX = 100;

export async function driveFanout(task: FanoutTask): Promise<FanoutResult> {
  const { authority, consumers, everyMillis } = task;
  const connections = await openConnections(authority, Math.max(1, ...task.bursts.map(({ posters }) => posters)));
  const [first] = connections as readonly [Connection];
  const deadline = lobbyFromNow();
  const { chamberId, agents } = await openChamber(first, authority, { size: 1 }, deadline);
  const deliveries = new Deliveries(consumers);
  await subscribeAll(task, chamberId, deliveries);
  const sign = signer(authority, chamberId, agents[0] as Agent);
  const warmUp = [sign(WARM_UP_MOVES)];
  const bursts = task.bursts.map(({ posters, movesEach }) => Array.from({ length: posters }, () => sign(movesEach)));
  const paced = sign(task.pacedMoves);
  await untilDebate(deadline);
  const deliveriesPerSecond: number[] = [];
  for (const burst of [warmUp, ...bursts]) {
    const seconds = await post(connections, burst, deliveries);
    deliveriesPerSecond.push((consumers * burst.flat().length) / seconds);
  }
  await pace(first, paced, { everyMillis, deliveries });
  const { latencies, wakeUps } = deliveries;
  return {
    deliveriesPerSecond: deliveriesPerSecond.slice(1),
    latency: latenciesOf(latencies),
    wakeUp: latenciesOf(wakeUps),
  };
}

function openConnections(authority: string, count: number): Promise<readonly Connection[]> {
  return Promise.all(Array.from({ length: count }, () => Connection.open(authority)));
}

async function subscribeAll(
  { authority, consumersAt = authority, consumers }: FanoutTask,
  chamberId: number,
  deliveries: Deliveries,
): Promise<void> {
  const path = `/chambers/${chamberId}/stream`;
  const onEnd = (error: Error) => {
    throw error;
  };
  for (let from = 0; from < consumers; from += HANDSHAKES_MAX) {
    const some = Array.from({ length: Math.min(HANDSHAKES_MAX, consumers - from) }, (_, index) => from + index);
    await Promise.all(
      some.map((consumer) =>
        subscribe({ authority: consumersAt, path, onMessages: (count) => deliveries.add(consumer, count), onEnd }),
      ),
    );
  }
}

function signer(authority: string, chamberId: number, agent: Agent): (count: number) => readonly Buffer[] {
  const path = `/chambers/${chamberId}/debate`;
  const comment = 'The reserve should cover two quarters of operating costs before anything is spent on growth.';
  return (count) =>
    Array.from({ length: count }, (_, step) => {
      const body = JSON.stringify({ comment, refinement: { confidence: 0.7, step } });
      return signedRequest(agent, { authority, method: 'POST', path, body });
    });
}

/** Returns the seconds until all moves are delivered. */
async function post(
  connections: readonly Connection[],
  burst: readonly (readonly Buffer[])[],
  deliveries: Deliveries,
): Promise<number> {
  const startedAt = performance.now();
  const posted = burst.map(async (moves, index) => {
    for (const move of moves) await postOne(connections[index] as Connection, move);
  });
  await Promise.all([deliveries.more(burst.flat().length), ...posted]);
  return (performance.now() - startedAt) / 1000;
}

async function postOne(connection: Connection, move: Buffer): Promise<void> {
  const answer = await connection.exchange(move);
  if (answer.status !== 200) throw new Error(describeAnswer(answer));
}

interface Pace {
  readonly everyMillis: number;
  readonly deliveries: Deliveries;
}

async function pace(connection: Connection, moves: readonly Buffer[], { everyMillis, deliveries }: Pace) {
  const delivered = deliveries.more(moves.length);
  for (const [index, move] of moves.entries()) {
    const next = sleep(everyMillis);
    deliveries.sent(index, performance.now());
    await postOne(connection, move);
    deliveries.answered(index, performance.now());
    await next;
  }
  await delivered;
}
