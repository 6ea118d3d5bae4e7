// Invalid handshakes and frames: they are rejected or closed, and other consumers of the stream are not affected.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Consumer, consume } from '../kit/consumers.ts';
import { Random } from '../kit/random.ts';
import { RawSocket } from '../kit/raw-socket.ts';
import { debating, type Running, run } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';

const STREAMS_MAX = 4;
/** The header of a pong with a four-byte payload. */
const PONG = String.fromCharCode(0x8a, 4);

let running: Running;
let witness: Consumer;
let debate: (comment: string) => Promise<number>;
let path: string;

beforeEach(async () => {
  running = await run({ STREAMS_PER_ADDRESS_MAX: String(STREAMS_MAX) });
  const chamber = await debating(running);
  debate = chamber.debate;
  path = `/chambers/${chamber.id}/stream?after=0`;
  witness = await consume(running, path);
});

afterEach(async () => {
  const eventId = await debate('still here');
  await witness.until(eventId);
  expect(witness.eventIds.at(-1)).toBe(eventId);
});

const handshake = (extra = '', version = '13', key = randomBytes(16).toString('base64')) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  `Sec-WebSocket-Version: ${version}\r\nSec-WebSocket-Key: ${key}\r\n${extra}\r\n`;

/** Waits until only the witness's stream is left. */
async function expectNoneLeft(): Promise<void> {
  const fresh: Consumer[] = [];
  while (fresh.length < STREAMS_MAX - 1) {
    // The service may notice the end a moment after the test.
    const consumer = await consume(running, path).catch(() => undefined);
    if (consumer !== undefined) fresh.push(consumer);
  }
  for (const { socket } of fresh) socket.terminate();
}

describe('a handshake', () => {
  it.each([
    ['without a key', () => handshake('', '13', '')],
    ['with a key that is none', () => handshake('', '13', 'short')],
    ['of an old version', () => handshake('', '7')],
    ['of no version', () => handshake('', 'x')],
  ])('%s is rejected with 400 and the usual body', async (_title, bytes) => {
    const socket = await RawSocket.open(running.url);
    socket.write(bytes());
    await socket.closed;
    expect(socket.received).toMatch(/^HTTP\/1\.1 400 /);
    expect(socket.received).toMatch(/\{"error":"FORUM_ERR_/);
    await expectNoneLeft();
  });

  it.each([
    ['without a key', () => handshake('', '13', '')],
    ['for a chamber that is not there', () => handshake().replace('chambers/1', 'chambers/9')],
  ])('%s is soon closed by the service if the client does not close it', async (_title, bytes) => {
    const { hostname, port } = new URL(running.url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    atEnd(() => void socket.destroy());
    socket.on('error', () => {}).write(bytes());
    await once(socket.resume(), 'end');
    // Writing to a socket that the other side has closed resets it.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const writing = setInterval(() => socket.write('x'), 100);
    await closed;
    clearInterval(writing);
    await expectNoneLeft();
  });

  it('a handshake with unknown extensions and protocols is accepted without them', async () => {
    const socket = await RawSocket.open(running.url);
    socket.write(handshake('Sec-WebSocket-Extensions: permessage-deflate; x=1, y\r\nSec-WebSocket-Protocol: a, b\r\n'));
    const received = await socket.receive(/\r\n\r\n/);
    expect(received).toMatch(/^HTTP\/1\.1 101 /);
    expect(received.toLowerCase()).not.toContain('sec-websocket-extensions');
  });

  it('a handshake leaves no sockets or listeners behind, whenever it is reset', async () => {
    const random = new Random(4);
    for (let attempt = 0; attempt < 100; attempt++) {
      const socket = await RawSocket.open(running.url);
      const bytes = handshake();
      socket.write(random.chance(0.3) ? bytes.slice(0, random.below(bytes.length)) : bytes);
      if (random.chance(0.5)) await new Promise((resolve) => setImmediate(resolve));
      socket.reset();
    }
    await expectNoneLeft();
  });

  it('a handshake with the first frames in the same packet is served', async () => {
    const socket = await RawSocket.open(running.url);
    socket.write(Buffer.concat([Buffer.from(handshake()), frame(0x9, Buffer.from('ping'))]));
    await socket.receive(`${PONG}ping`);
  });
});

/** A masked frame of a client. */
function frame(opcode: number, payload: Uint8Array, { isFinal = true, reserved = 0, isMasked = true } = {}): Buffer {
  const length = payload.length;
  const size =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 255, length & 255];
  const [first = 0, ...rest] = size;
  const head = Buffer.from([(isFinal ? 0x80 : 0) | (reserved << 4) | opcode, (isMasked ? 0x80 : 0) | first, ...rest]);
  // A mask of zeros leaves the payload unchanged.
  return Buffer.concat([head, isMasked ? Buffer.alloc(4) : Buffer.alloc(0), payload]);
}

describe('a frame', () => {
  it.each<[string, () => Buffer, number]>([
    ['larger than any that is expected', () => frame(0x1, Buffer.alloc(100_000)), 1009],
    [
      'that claims to be larger than memory',
      () => Buffer.from([0x82, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
      1009,
    ],
    ['without a mask', () => frame(0x1, Buffer.from('x'), { isMasked: false }), 1002],
    ['of a reserved opcode', () => frame(0x5, Buffer.from('x')), 1002],
    ['with reserved bits', () => frame(0x1, Buffer.from('x'), { reserved: 4 }), 1002],
    ['of text that is not UTF-8', () => frame(0x1, Buffer.from([0xff, 0xfe])), 1007],
    ['of control that is fragmented', () => frame(0x9, Buffer.from('x'), { isFinal: false }), 1002],
    ['of control that is too long', () => frame(0x9, Buffer.alloc(200)), 1002],
    ['that continues nothing', () => frame(0x0, Buffer.from('x')), 1002],
    ['of a close code that is none', () => frame(0x8, Buffer.from([0x00, 0x01])), 1002],
  ])('%s closes its own connection', async (_title, bytes, code) => {
    const socket = await RawSocket.open(running.url);
    socket.write(handshake());
    await socket.receive(/"eventId":2/);
    socket.write(bytes());
    const closeFrame = String.fromCharCode(0x88, 0x02, code >> 8, code & 255);
    await socket.receive(closeFrame);
    await socket.closed;
    await expectNoneLeft();
  });

  it('a frame in thousands of one-byte fragments closes its connection at the limit instead of being buffered', async () => {
    const socket = await RawSocket.open(running.url);
    socket.write(handshake());
    await socket.receive(/"eventId":2/);
    socket.write(frame(0x1, Buffer.from('x'), { isFinal: false }));
    for (let fragment = 0; fragment < 5_000; fragment++) {
      if (!socket.socket.writable) break;
      socket.write(frame(0x0, Buffer.from('x'), { isFinal: false }));
    }
    await socket.closed;
    await expectNoneLeft();
  });

  it('a frame does not disturb other streams, even if thousands follow one another', async () => {
    const socket = await RawSocket.open(running.url);
    socket.write(handshake());
    for (let message = 0; message < 5_000; message++) socket.write(frame(0x1, Buffer.from('chatter')));
    socket.write(frame(0x9, Buffer.from('last')));
    await socket.receive(`${PONG}last`);
  });
});
