// The database server goes away: no answered move is lost or duplicated, and the nodes survive.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { keysInMemory } from '../../../src/keys/key-file.ts';
import type { AppendResult, EventLog, LogEntry, Registration } from '../../../src/log/log.ts';
import { readPages } from '../../../src/log/pages.ts';
import { NO_LIMITS } from '../../../src/moves/move.ts';
import { PublishedHistory } from '../../../src/publisher/published-history.ts';
import { checkpointSigner } from '../../../src/publisher/publisher.ts';
import { formatCheckpoint } from '../../../src/tlog/checkpoint.ts';
import { formatNote } from '../../../src/tlog/note.ts';
import type { ChamberEvent } from '../../../src/vocabulary/events.ts';
import { Checker } from '../../forum/simulation/checker.ts';
import type { HistoryRequest, Stream } from '../../forum/simulation/history.ts';
import { askedBy } from '../../forum/simulation/wire-history.ts';
import { enterPhase, openChamber } from '../../kit/chambers.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { atEnd } from '../../kit/temporary.ts';
import { type Prepared, TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { entry, newSignatureKey } from '../entries.ts';

/** A chamber in DEBATE, and the history of its only member's comments. */
async function inDebate(service: TestService) {
  const by = await service.agent();
  const id = await openChamber(service, [by]);
  await enterPhase(service, id, 'DEBATE');
  const requests: HistoryRequest[] = [];
  const send = async (at: TestService, request: Prepared) => {
    const asked = askedBy(request);
    const invokedAt = performance.now();
    const answer = await at.send(request);
    const outcome = { is: 'accepted', event: { eventId: answer.body.eventId } } as const;
    const response = answer.status === 200 ? { respondedAt: performance.now(), outcome } : {};
    requests.push({ id: `${asked.signature}`, asked, invokedAt, ...response });
    return answer;
  };
  /** Returns the promises of responses that the service's log breaks. */
  const problems = async (at: TestService) => {
    const lines = new Map<Stream, readonly string[]>();
    for (const stream of [id, by.did]) lines.set(stream, await linesOf(at, stream));
    return new Checker().check({ requests, lines, limits: NO_LIMITS, isComplete: false });
  };
  return {
    ...{ id, send, problems },
    debate: (comment: string) => service.prepare('POST', `/chambers/${id}/debate`, { by, body: { comment } }),
  };
}

async function linesOf({ log }: TestService, stream: Stream): Promise<readonly string[]> {
  const range = { stream, after: 0, until: await log.lastEventId(stream), lane: 'bulk' } as const;
  const lines: string[] = [];
  for await (const { ndjson } of readPages(log, range)) lines.push(...ndjson.toString().split('\n').slice(0, -1));
  return lines;
}

async function commentsOf(service: TestService, id: number): Promise<readonly string[]> {
  const events = (await linesOf(service, id)).map((line) => JSON.parse(line) as ChamberEvent);
  return events.flatMap((event) => (event.type === 'chamber.debated' ? event.payload.comment : []));
}

describe('a cut connection', () => {
  it('cutting the connection between any two messages of a commit loses and duplicates no move', {
    timeout: 120_000,
  }, async () => {
    const proxy = await openProxy(await temporaryPostgres());
    const service = new TestService({ store: await openStore(proxy.url) });
    const { id, debate, send, problems } = await inDebate(service);
    const comments: string[] = [];
    for (let cut = 0; cut < 24; cut++) {
      for (const isForwarded of [true, false]) {
        const comment = `${cut} ${isForwarded}`;
        proxy.cutAt(cut, isForwarded);
        const { status, body } = await send(service, debate(comment));
        expect([status, body.error ?? '']).toEqual([200, '']);
        comments.push(comment);
      }
    }
    // An append sends and receives at least one chunk; the connection is cut before and after each.
    expect(proxy.cuts()).toBeGreaterThanOrEqual(2 * 2);
    proxy.cutAt(Number.POSITIVE_INFINITY, true);
    expect(await problems(service)).toEqual([]);
    expect(await commentsOf(service, id)).toEqual(comments);
  });
});

describe('a commit without confirmation', () => {
  it('only the error of a move that may be in the log says so, and the same bytes get its first response', {
    timeout: 120_000,
  }, async () => {
    const proxy = await openProxy(await temporaryPostgres());
    const service = new TestService({ store: await openStore(proxy.url) });
    const { id, debate } = await inDebate(service);
    const [unconfirmed, notSent] = [debate('unconfirmed'), debate('not sent')];
    proxy.loseAfter('unconfirmed');
    expect(await service.send(unconfirmed)).toMatchObject({
      status: 503,
      body: { error: 'FORUM_ERR_UNAVAILABLE', detail: expect.stringContaining('may have been'), mayBeAccepted: true },
    });
    const rejected = await service.send(notSent);
    expect([rejected.status, rejected.body.mayBeAccepted]).toEqual([503, undefined]);
    proxy.restore();
    for (let sent = 0; sent < 2; sent++) expect((await service.send(unconfirmed)).status).toBe(200);
    expect(await commentsOf(service, id)).toEqual(['unconfirmed']);
  });
});

describe('a killed server', () => {
  it('a server that is killed and restarted has every accepted move once, and the nodes continue', {
    timeout: 120_000,
  }, async () => {
    const server = await startPostgres();
    atEnd(server.stop);
    const url = await temporaryPostgres(server.url);
    const services = [new TestService({ store: await openStore(url) })];
    const { id, debate, send, problems } = await inDebate(services[0] as TestService);
    services.push(new TestService({ store: await openStore(url), clock: (services[0] as TestService).clock }));
    let isOver = false;
    const answered: string[] = [];
    const load = Array.from({ length: 8 }, async (_, client) => {
      for (let turn = 0; !isOver; turn++) {
        const request = debate(`${client}.${turn}`);
        for (;;) {
          const { status } = await send(services[(client + turn) % 2] as TestService, request);
          if (status === 200) break;
          expect(status).toBe(503);
        }
        answered.push(`${client}.${turn}`);
      }
    });
    for (const signal of ['SIGKILL', 'SIGINT', 'SIGKILL'] as const) {
      await sleep(500);
      await server.kill(signal);
      await sleep(200);
      await server.restart();
    }
    await sleep(500);
    process.kill(server.pid(), 'SIGSTOP');
    await sleep(500);
    process.kill(server.pid(), 'SIGCONT');
    isOver = true;
    await Promise.all(load);
    for (const service of services) expect(await problems(service)).toEqual([]);
    for (const service of services) expect((await commentsOf(service, id)).toSorted()).toEqual(answered.toSorted());
    expect(answered.length).toBeGreaterThan(8);
  });

  it('moves return 503 while the database server is killed', { timeout: 180_000 }, async () => {
    const server = await startPostgres();
    atEnd(server.stop);
    const service = new TestService({ store: await openStore(await temporaryPostgres(server.url)) });
    const { id, debate } = await inDebate(service);
    await server.kill('SIGKILL');
    // The server's child processes notice after a moment.
    const read = async () => (await service.request('GET', `/chambers/${id}`)).body.error;
    await expect.poll(read, { timeout: 20_000 }).toBe('FORUM_ERR_UNAVAILABLE');
    const request = debate('later');
    expect((await service.send(request)).status).toBe(503);
    await service.forum.persistClock().catch(() => {});
    expect(service.store.meta.writeFailure).toBeDefined();
    await server.restart();
    expect((await service.send(request)).status).toBe(200);
    expect(service.store.meta.writeFailure).toBeUndefined();
    expect(await commentsOf(service, id)).toEqual(['later']);
  });
});

describe('an append whose backend ends while it waits for a standby', () => {
  /** A log whose event 2 of chamber 1 is visible although no standby has it, the pending append, and another node. */
  async function openUnconfirmed() {
    const server = await startPostgres();
    atEnd(server.stop);
    const url = await temporaryPostgres(server.url);
    const [store, other] = [await openStore(url), await openStore(url)];
    const registration = { did: ANN, eventId: 1, signature: 'r'.repeat(32), operatorEmail: undefined };
    await store.log.append({ entries: [entry(1, 1)] });
    await setStandby(server.url, 'away');
    const known = entry(1, 2);
    const entries = [known, entry(ANN, 1, { signature: null })];
    const append = store.log.append({ entries, registrations: [registration] });
    await eventually(async () => expect(await execute(server.url, END_WAITING)).toHaveLength(1), 20_000);
    await eventually(async () => expect(await other.log.lastEventId(1)).toBe(2), 20_000);
    return { append, known, registration, other, endWait: () => setStandby(server.url, '') };
  }

  it.each<readonly [string, (log: EventLog, written: Written) => Promise<unknown>, (written: Written) => unknown]>([
    ['is answered', (_, { append }) => append, () => NONE],
    [
      'a retry at another node finds the line',
      (log, { known }) => log.append({ entries: [entry(1, 3, { signature: known.signature })] }),
      ({ known }) => ({ conflicts: new Map([[1, 2]]), found: new Map([[known.signature, String(known.line)]]) }),
    ],
    [
      'a repeated registration at another node finds the line',
      async (log, { registration: { signature } }) => [...(await log.find([signature])).keys()],
      ({ registration: { signature } }) => [signature],
    ],
    [
      'a move at another node is rejected',
      (log) => log.append({ entries: [], heads: new Map([[1, 2]]), signatures: [newSignatureKey()] }),
      () => NONE,
    ],
  ])(
    '%s only once the standby has the rows, although they are visible earlier',
    { timeout: 60_000 },
    async (_, ask, expected) => {
      const { other, endWait, ...written } = await openUnconfirmed();
      let isAnswered = false;
      const answer = ask(other.log, written).finally(() => {
        isAnswered = true;
      });
      await sleep(1_000);
      const wasAnsweredEarly = isAnswered;
      await endWait();
      expect([await answer, wasAnsweredEarly]).toEqual([expected(written), false]);
      await written.append;
    },
  );
});

it('a checkpoint is shown once the standby has it, even if the publisher’s backend ended while waiting', {
  timeout: 60_000,
}, async () => {
  const server = await startPostgres();
  atEnd(server.stop);
  const url = await temporaryPostgres(server.url);
  const [{ log, nodes, tree }, other] = [await openStore(url), await openStore(url)];
  const lease = nodes.lease('publisher');
  await eventually(() => expect(lease.token).toBeDefined(), 20_000);
  // Extending the lease would also wait.
  nodes.close();
  const key = keysInMemory(log.logId, 0).current('checkpoints', 0);
  const { sign, origin } = checkpointSigner(`test/log/${log.logId}`, key);
  const text = formatCheckpoint({ origin, size: 1, root: Buffer.alloc(32) });
  const checkpoint = { size: 1, note: formatNote({ text, signatures: [sign(text)] }) };
  await setStandby(server.url, 'away');
  const publishing = tree.publish({ from: 0, checkpoint, tiles: [], lease: String(lease.token) }).catch(() => {});
  await eventually(async () => expect(await execute(server.url, END_WAITING)).not.toEqual([]), 20_000);
  const isVisible = async () => expect(await execute(url, 'SELECT FROM checkpoints')).toHaveLength(1);
  await eventually(isVisible, 20_000);
  expect(await other.tree.checkpoint()).toEqual(checkpoint);
  const history = new PublishedHistory({ logId: log.logId, path: undefined, keys: () => [key] });
  let shown = 0;
  const reads = Array.from({ length: 3 }, async () => {
    const read = await history.newest(other.tree);
    shown++;
    return read;
  });
  await sleep(1_000);
  const shownEarly = shown;
  await setStandby(server.url, '');
  const same = expect.objectContaining(checkpoint);
  expect([await Promise.all(reads), shownEarly]).toEqual([[same, same, same], 0]);
  await publishing;
});

async function setStandby(serverUrl: string, name: string): Promise<void> {
  await execute(serverUrl, `ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
  await execute(serverUrl, 'SELECT pg_reload_conf()');
  // The checkpointer, which informs the other processes, reads the setting later.
  await sleep(1_000);
}

interface Written {
  readonly append: Promise<AppendResult>;
  readonly known: LogEntry;
  readonly registration: Registration & { readonly signature: string };
}

const ANN = 'did:key:zAnn';
const NONE: AppendResult = { conflicts: new Map(), found: new Map() };
const END_WAITING = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/**
 * A TCP proxy that cuts every connection at the n-th chunk of data from now on, before or after forwarding it; or after it has forwarded a
 * text, and then accepts no connection until `restore`.
 */
async function openProxy(target: string) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let left = Number.POSITIVE_INFINITY;
  let isForwarded = true;
  let cuts = 0;
  let lost: Buffer | undefined;
  let isAway = false;
  const pass = (to: Socket) => (data: Buffer) => {
    if (lost !== undefined && data.includes(lost)) {
      isAway = true;
      left = 0;
    }
    const isCut = left-- === 0;
    if (!isCut || isForwarded) to.write(data);
    if (!isCut) return;
    cuts++;
    // Earlier data is sent first.
    setImmediate(() => {
      for (const socket of sockets) socket.destroy();
    });
  };
  const server = createServer((near) => {
    if (isAway) return void near.destroy();
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true).on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', pass(far));
    far.on('data', pass(near));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => void server.close());
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cutAt = (piece: number, forwards: boolean) => {
    left = piece;
    isForwarded = forwards;
  };
  const loseAfter = (text: string) => {
    isForwarded = true;
    lost = Buffer.from(text);
  };
  const restore = () => {
    lost = undefined;
    isAway = false;
  };
  return { url: url.href, cutAt, loseAfter, restore, cuts: () => cuts };
}
