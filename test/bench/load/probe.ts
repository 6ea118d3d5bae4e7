// Requests some paths in turn on one connection, with a pause after each round, and records when each request was sent and how
// long the response took.
import { setTimeout as sleep } from 'node:timers/promises';
import { rawRequest } from './agents.ts';
import { describeAnswer } from './chambers.ts';
import { Connection } from './connection.ts';
import { epochNow } from './span.ts';

/** The message with which the parent ends a task that runs until it is interrupted. */
export const INTERRUPT = 'interrupt';

export interface ProbeTask {
  readonly kind: 'probe';
  readonly authority: string;
  readonly paths: readonly string[];
  /** The duration; by default, until the task is interrupted. */
  readonly forMillis?: number;
  readonly pauseMillis: number;
}

export interface Sample {
  /** The time at which the request was sent, in milliseconds since 1970. */
  readonly at: number;
  readonly millis: number;
}

export interface ProbeResult {
  /** The samples of each path. */
  readonly samples: readonly (readonly Sample[])[];
}

export async function driveProbe(task: ProbeTask, interrupted: AbortSignal): Promise<ProbeResult> {
  const { authority, paths, forMillis = Number.POSITIVE_INFINITY, pauseMillis } = task;
  const connection = await Connection.open(authority);
  const requests = paths.map((path) => rawRequest({ authority, method: 'GET', path, body: '' }));
  const samples = paths.map((): Sample[] => []);
  const from = epochNow();
  while (!interrupted.aborted && epochNow() < from + forMillis) {
    for (const [index, request] of requests.entries()) samples[index]?.push(await ask(connection, request));
    if (pauseMillis > 0) await sleep(pauseMillis);
  }
  connection.close();
  return { samples };
}

async function ask(connection: Connection, request: Buffer): Promise<Sample> {
  const at = epochNow();
  const answer = await connection.exchange(request);
  if (answer.status !== 200) throw new Error(describeAnswer(answer));
  return { at, millis: epochNow() - at };
}
