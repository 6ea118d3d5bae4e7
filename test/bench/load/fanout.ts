// Live consumers of one chamber in this process, which also posts the moves: so both ends of a delivery share a clock.
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
  readonly consumers: number;
  /** Connections that post one move after another, each as fast as it is answered. */
  readonly posters: number;
  readonly movesEach: number;
  /** Then one every so many milliseconds, unless the one before is not answered yet. */
  readonly pacedMoves: number;
  readonly everyMillis: number;
}

export interface FanoutResult {
  readonly deliveriesPerSecond: number;
  /** From sending a paced move to each consumer's having it whole. */
  readonly latency: Latencies;
}

const WARM_UP_MOVES = 60;
/** Consumers that shake hands at once. */
const HANDSHAKES_MAX = 100;

export async function driveFanout(task: FanoutTask): Promise<FanoutResult> {
  const posters = await Promise.all(Array.from({ length: task.posters }, () => Connection.open(task.authority)));
  const [poster] = posters as [Connection];
  const deadline = lobbyFromNow();
  const { chamberId, agents } = await openChamber(poster, task.authority, 1, deadline);
  const deliveries = new Deliveries(task.consumers);
  await subscribeAll(task, chamberId, deliveries);
  const sign = signer(task.authority, chamberId, agents[0] as Agent);
  const warmUp = sign(WARM_UP_MOVES);
  const bursts = posters.map(() => sign(task.movesEach));
  const paced = sign(task.pacedMoves);
  await untilDebate(deadline);
  await post(poster, warmUp);
  await deliveries.all(warmUp.length);
  const startedAt = performance.now();
  const burstMoves = warmUp.length + task.posters * task.movesEach;
  await Promise.all([deliveries.all(burstMoves), ...posters.map((each, index) => post(each, bursts[index] ?? []))]);
  const seconds = (performance.now() - startedAt) / 1000;
  await pace(poster, paced, {
    everyMillis: task.everyMillis,
    onSend: (index) => deliveries.sent(burstMoves + index, performance.now()),
  });
  await deliveries.all(burstMoves + paced.length);
  const deliveriesPerSecond = (task.consumers * task.posters * task.movesEach) / seconds;
  return { deliveriesPerSecond, latency: latenciesOf(deliveries.latencies) };
}

async function subscribeAll(
  { authority, consumers }: FanoutTask,
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
        subscribe({ authority, path, onMessages: (count) => deliveries.add(consumer, count), onEnd }),
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

async function post(connection: Connection, moves: readonly Buffer[]): Promise<void> {
  for (const move of moves) {
    const answer = await connection.exchange(move);
    if (answer.status !== 200) throw new Error(describeAnswer(answer));
  }
}

interface Pace {
  readonly everyMillis: number;
  readonly onSend: (index: number) => void;
}

async function pace(connection: Connection, moves: readonly Buffer[], { everyMillis, onSend }: Pace): Promise<void> {
  for (const [index, move] of moves.entries()) {
    const next = sleep(everyMillis);
    onSend(index);
    await post(connection, [move]);
    await next;
  }
}
