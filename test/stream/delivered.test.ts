// What has reached a peer, as Linux tells it; and readers of server-sent events that nothing reaches.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { deliveredBytes, parseUnacknowledged } from '../../src/stream/delivered.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';

const TABLES = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 185839 1 00000000bfa4ef47 100 0 0 10 0
  20: 0100630A:2253 0200630A:A61A 01 00000073:00000000 01:0000004A 00000009     0        0 0 2 00000000ab6b37af 326 4 31 1 -1
  21: 0100630A:2253 0300630A:A61A 01 00000005:00000000 01:0000004A 00000009     0        0 0 2 00000000ab6b37af 326 4 31 1 -1
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt
   0: 00000000000000000000000001000000:2253 00000000000000000000000001000000:A622 01 0000004D:00000000 01:0000004A 00000009  0
`;

describe('the table of connections', () => {
  it('is read for both families; of equal ports the connection that is best off counts', () => {
    expect(parseUnacknowledged(TABLES)).toEqual(
      new Map([
        ['8787 0', 0],
        ['8787 42522', 5],
        ['8787 42530', 77],
      ]),
    );
  });

  it('gives nothing where the system has none', () => {
    expect(parseUnacknowledged('')).toEqual(new Map());
  });
});

async function connected(): Promise<{ readonly socket: Socket; readonly peer: Socket }> {
  const server = createServer().listen(0, '127.0.0.1');
  atEnd(() => void server.close());
  await once(server, 'listening');
  const peer = connect((server.address() as AddressInfo).port, '127.0.0.1');
  atEnd(() => void peer.destroy());
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => {});
  return { socket, peer };
}

it('bytes are delivered once the peer has acknowledged them', async () => {
  const { socket, peer } = await connected();
  peer.resume();
  socket.write('x'.repeat(10_000));
  await vi.waitFor(async () => expect(await deliveredBytes([socket])).toEqual([{ least: 10_000, most: 10_000 }]), {
    timeout: 5_000,
  });
});

it('bytes that are written while the system is asked may be delivered, or not', async () => {
  const { socket, peer } = await connected();
  peer.resume();
  socket.write('x'.repeat(1_000));
  const [look] = await deliveredBytes([socket], async () => {
    await new Promise((resolve) => socket.write('x'.repeat(500), resolve));
    const [local, remote, unacknowledged] = [hex(socket.localPort, 4), hex(socket.remotePort, 4), hex(700, 8)];
    return `   1: 0100007F:${local} 0100007F:${remote} 01 ${unacknowledged}:00000000\n`;
  });
  expect(look).toEqual({ least: 300, most: 800 });
});

function hex(value: number | undefined, digits: number): string {
  return Number(value).toString(16).toUpperCase().padStart(digits, '0');
}

describe('a reader of server-sent events', { timeout: 60_000 }, () => {
  const SETTINGS = { STREAM_PING_SECONDS: '1', STREAM_DEAD_SECONDS: '2' };

  it('to whom nothing gets through is cut, and one that merely waits is not', async () => {
    const running = await run(SETTINGS);
    const { id, debate } = await debating(running);
    const [stopped, waiting] = [await open(running, id), await open(running, id)];
    stopped.socket.pause();
    for (let move = 0; move < 800; move++) await debate('x'.repeat(8_000));
    await waiting.receive('id: 802');
    await sleep(4_000);
    stopped.socket.resume();
    await stopped.closed;
    expect(stopped.received).not.toContain('id: 802');
    await debate('one more');
    await waiting.receive('id: 803');
    expect(waiting.received.match(/: keep-alive/g)?.length).toBeGreaterThan(1);
  });
});

async function open({ url }: Running, chamberId: number): Promise<RawSocket> {
  const socket = await RawSocket.open(url);
  socket.write(`GET /chambers/${chamberId}/stream?after=0 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
  await socket.receive('id: 2');
  return socket;
}
