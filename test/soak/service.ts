// The measured program: the shipped service in its own process, with a clock that the parent sets. The program reports its
// resources on request, and stops when the parent disconnects.
import { subscribe } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { queryObjects, writeHeapSnapshot } from 'node:v8';
import { readConfig } from '../../src/config.ts';
import { openOwnLog } from '../../src/diagnostics/log-format.ts';
import { logProcessEvents } from '../../src/diagnostics/process-log.ts';
import type { Forum } from '../../src/forum/forum.ts';
import { startService } from '../../src/service/start.ts';
import { passing, TestClock } from '../kit/clock.ts';
import type { Figures } from './figures.ts';

/** The parent's message. The response is undefined, or Figures and the number of RPC calls. */
export type Order = { readonly time: number } | { readonly snapshot: string | undefined };

export interface Measured {
  readonly figures: Figures;
  readonly rpcCalls: number;
}

const Timeout = setTimeout(() => {}, 0).constructor as NewableFunction;
const QUIET_MS = 100;
/** The number of checks for which the number of sockets must be unchanged. */
const QUIET_LOOKS = 8;
/** The number of samples per measurement. */
const MOMENTS = 3;
const MOMENT_MS = 2_000;

// The folder for the state of the development chain, if the log is in PostgreSQL.
mkdirSync('data', { recursive: true });
const sockets = watchSockets();
let rpcCalls = 0;
subscribe('undici:request:create', () => rpcCalls++);
const clock = new TestClock();
const config = readConfig(process.env);
const ownLog = openOwnLog(config);
logProcessEvents(ownLog);
const service = await startService({
  config,
  logger: ownLog.logger,
  version: 'soak',
  lostLogLines: ownLog.lostLines,
  clock: passing(clock.read),
  onFatal: (error) => {
    throw error;
  },
});
const followers = countFollowers(service.forum);

process.on('message', async (order: Order) => {
  if ('time' in order) clock.set(order.time);
  process.send?.('time' in order ? {} : await measure(order.snapshot));
});
process.once('disconnect', () => service.stop().then(() => process.exit(0)));
process.send?.(service.url);

function watchSockets(): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  const watch = (message: unknown) => {
    const { socket } = message as { readonly socket: Socket };
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
  subscribe('net.server.socket', watch);
  subscribe('net.client.socket', watch);
  return open;
}

/** Node has no other way to read their number. */
function countFollowers(forum: Forum): () => number {
  let count = 0;
  const follow = forum.follow.bind(forum);
  forum.follow = (stream, wake) => {
    const unfollow = follow(stream, wake);
    let isFollowing = true;
    count++;
    return () => {
      if (isFollowing) count--;
      isFollowing = false;
      unfollow();
    };
  };
  return () => count;
}

/**
 * Takes the minimum of several samples: resources in use at one sample are gone at another, but leaked ones are present in every
 * sample.
 */
async function measure(snapshot: string | undefined): Promise<Measured> {
  const moments = [await figuresNow()];
  while (moments.length < MOMENTS) {
    await sleep(MOMENT_MS);
    moments.push(await figuresNow());
  }
  if (snapshot !== undefined) writeHeapSnapshot(snapshot);
  const least = ([name]: [string, number]) => [name, Math.min(...moments.map((each) => each[name as keyof Figures]))];
  const [latest] = moments.slice(-1) as [Figures];
  return { figures: Object.fromEntries(Object.entries(latest).map(least)) as unknown as Figures, rpcCalls };
}

async function figuresNow(): Promise<Figures> {
  for (let looks = 0, before = -1; looks < QUIET_LOOKS; looks++) {
    if (sockets.size !== before) looks = 0;
    before = sockets.size;
    await sleep(QUIET_MS);
  }
  for (let round = 0; round < 2; round++) {
    globalThis.gc?.();
    await sleep(0);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  const others = process
    .getActiveResourcesInfo()
    .filter((name) => !/^(Timeout|Immediate|TCPSocketWrap)$|Req/.test(name));
  return {
    heapBytes: heapUsed + external,
    residentBytes: rss,
    handles: others.length,
    sockets: sockets.size,
    listeners: [process, ...sockets].reduce((sum, each) => sum + listenersOf(each), 0),
    followers: followers(),
    timers: count(Timeout),
    promises: count(Promise),
    files: readdirSync('/proc/self/fd').length,
  };
}

function listenersOf(emitter: EventEmitter): number {
  return emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);
}

/** Returns the number of instances on the heap. */
function count(type: NewableFunction): number {
  return queryObjects(type, { format: 'count' });
}
