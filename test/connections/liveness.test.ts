// Detection of dead peers; the test triggers the checks.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Liveness } from '../../src/connections/liveness.ts';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';

const PING_MS = 30_000;
const DEAD_MS = 60_000;
const CHECK_MS = 10_000;
/** Far more bytes than the buffers of two sockets hold. */
const BACKLOG = Buffer.alloc(32_000_000);

let socket: Socket;
let peer: Socket;
let liveness: Liveness;

beforeEach(async () => {
  const server = createServer().listen(0, '127.0.0.1');
  atEnd(() => void server.close());
  await once(server, 'listening');
  peer = connect((server.address() as AddressInfo).port, '127.0.0.1');
  peer.on('error', () => {});
  atEnd(() => void peer.destroy());
  [socket] = (await once(server, 'connection')) as [Socket];
  atEnd(() => void socket.destroy());
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  liveness = new Liveness({ pingIntervalMs: PING_MS, deadAfterMs: DEAD_MS });
});

afterEach(() => {
  liveness.close();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it('liveness checks ping a peer on time, and disconnect it only after enough unanswered pings', () => {
  const ping = vi.fn();
  liveness.watch({ socket, carrier: socket, answersPings: true, ping });
  vi.advanceTimersByTime(DEAD_MS);
  expect([ping.mock.calls.length, socket.destroyed]).toEqual([DEAD_MS / PING_MS, false]);
  vi.advanceTimersByTime(CHECK_MS);
  expect(socket.destroyed).toBe(true);
});

it('liveness checks keep a peer that returns pongs', () => {
  const answer = liveness.watch({ socket, carrier: socket, answersPings: true, ping: () => answer() });
  vi.advanceTimersByTime(10 * DEAD_MS);
  expect(socket.destroyed).toBe(false);
});

it('liveness checks ping and keep a peer that cannot return pongs while nothing is buffered', () => {
  const ping = vi.fn();
  liveness.watch({ socket, carrier: socket, answersPings: false, ping });
  vi.advanceTimersByTime(10 * DEAD_MS);
  expect([ping.mock.calls.length, socket.destroyed]).toEqual([(10 * DEAD_MS) / PING_MS, false]);
});

it.each([true, false])(
  'liveness checks disconnect a peer whose buffered bytes do not drain, without pinging it (returns pongs: %s)',
  (answers) => {
    const ping = vi.fn();
    liveness.watch({ socket, carrier: socket, answersPings: answers, ping });
    socket.write(BACKLOG);
    vi.advanceTimersByTime(DEAD_MS);
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(CHECK_MS);
    expect([ping.mock.calls.length, socket.destroyed]).toEqual([0, true]);
  },
);

/** The number of bytes that the kernel has accepted. */
function takenBytes(): number {
  const { _handle: handle } = socket as unknown as {
    readonly _handle: { readonly bytesWritten: number; readonly writeQueueSize: number };
  };
  return handle.bytesWritten - handle.writeQueueSize;
}

it.each([true, false])(
  'liveness checks keep a peer that drains a part of one large write (returns pongs: %s)',
  async (answers) => {
    liveness.watch({ socket, carrier: socket, answersPings: answers, ping: () => {} });
    socket.write(BACKLOG);
    for (let step = 0; step < 6; step++) {
      vi.advanceTimersByTime(DEAD_MS - CHECK_MS);
      const before = takenBytes();
      let read = 0;
      while (read < 2_000_000) {
        await once(peer, 'readable');
        for (let chunk = peer.read(); chunk !== null; chunk = peer.read()) read += chunk.length;
      }
      await until(() => takenBytes() > before);
    }
    expect([socket.destroyed, socket.writableLength]).toEqual([false, BACKLOG.length]);
  },
);

it('liveness checks forget a peer whose response has ended on a keep-alive connection', () => {
  const ping = vi.fn();
  const carrier = new PassThrough();
  liveness.watch({ socket, carrier, answersPings: true, ping });
  carrier.emit('close');
  vi.advanceTimersByTime(10 * DEAD_MS);
  expect([ping.mock.calls.length, socket.destroyed]).toEqual([0, false]);
});

it('a late check after a pause of the process counts as one', () => {
  liveness.watch({ socket, carrier: socket, answersPings: true, ping: () => {} });
  vi.advanceTimersByTime(CHECK_MS);
  const later = performance.now() + 10 * DEAD_MS;
  vi.spyOn(performance, 'now').mockReturnValue(later);
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 10 * DEAD_MS);
  vi.advanceTimersByTime(CHECK_MS);
  expect(socket.destroyed).toBe(false);
});
