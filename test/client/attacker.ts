// A service that costs its clients as much as possible: its responses never end, or are far larger than they appear.
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { listen } from '../kit/serve.ts';

export interface Attacker {
  readonly url: string;
  /** The number of requests since the attack was chosen. */
  requests: number;
  attack: AttackName;
  close(): void;
}

const MEBIBYTE = 1024 * 1024;
const PIECE = 'x'.repeat(65_536);
/** With BOMB_MEMBERS gzip members, 3 MB unpack to 3 GB. */
const BOMB = gzipSync(Buffer.alloc(10_000_000, ' '));
const BOMB_MEMBERS = 300;

type Send = (response: ServerResponse) => void;

const ATTACKS = {
  /** No attack, to measure a program's normal cost. */
  none: (response) => response.writeHead(404).end('{"error":"FORUM_ERR_NOT_FOUND","detail":"none"}'),
  gzipBomb: (response) => {
    response.writeHead(200, { 'Content-Encoding': 'gzip' });
    for (let member = 0; member < BOMB_MEMBERS; member++) response.write(BOMB);
    response.end();
  },
  gzippedBomb: (response) => {
    const bomb = Buffer.concat(Array.from({ length: BOMB_MEMBERS }, () => BOMB));
    response.writeHead(200, { 'Content-Encoding': 'gzip, gzip' }).end(gzipSync(bomb));
  },
  endlessBody: (response) => endlessly(response.writeHead(200), '[{"chamberId":1},'.repeat(4_000)),
  endlessLine: (response) => endlessly(response.writeHead(200), PIECE),
  endlessEvent: (response) => endlessly(response.writeHead(200), `data: "${PIECE}`),
  endlessError: (response) => endlessly(response.writeHead(500), PIECE),
  endlessHeaders: ({ socket }) => {
    socket?.write('HTTP/1.1 200 OK\r\n');
    if (socket !== null) endlessly(socket, `X-Padding: ${'x'.repeat(8_000)}\r\n`);
  },
  endlessHints: ({ socket }) => {
    if (socket !== null) endlessly(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n'.repeat(100));
  },
  /** Each value takes 3 bytes here and about 60 in memory. */
  smallValues: (response) => response.end(`[${'{},'.repeat(1_000_000)}{}]`),
  /** As many values as the default limit allows, each with a different shape. */
  shapes: (response) => response.end(`[${Array.from({ length: 24_000 }, (_, index) => `{"x${index}":1}`).join(',')}]`),
  /** Nearly as long as the default limit allows; because of the first character, each character takes two bytes. */
  longText: (response) => response.end(`[{"chamberId":1,"name":"€${'x'.repeat(3 * MEBIBYTE - 100)}"}]`),
  /** A long text for the auditor, which has a lower limit. */
  longTextOfAudit: (response) => response.end(`[{"chamberId":1,"name":"€${'x'.repeat(1.5 * MEBIBYTE - 100)}"}]`),
  /** Nearly the longest list and items; each character takes two bytes. */
  longItems: (response) =>
    response.end(
      `[${Array(220)
        .fill(`{"name":"€${'x'.repeat(65_000)}"}`)
        .join(',')}]`,
    ),
  /** Invisible characters, which are escaped for a terminal. */
  invisible: (response) => response.end(`[{"chamberId":1,"name":"${'\u200b'.repeat(MEBIBYTE - 100)}"}]`),
  /** One long item widens the column of the printed table. */
  rows: (response) => response.end(`[${'{"chamberId":1},'.repeat(20_000)}{"name":"${'x'.repeat(2 * MEBIBYTE)}"}]`),
  /** Lists more due reveals than there are chambers. */
  reveals: (response) => {
    const todo = Array.from({ length: 8_000 }, (_, index) => ({ chamberId: index + 1, must: 'reveal' }));
    const text = JSON.stringify({ todo, more: false, version: '1', now: '2030-01-01T00:00:00.000Z' });
    response.end(text);
  },
  /** Sends one byte every 50 ms. */
  drip: (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 50);
    response.once('close', () => clearInterval(timer));
  },
} as const satisfies Readonly<Record<string, Send>>;

/** The attacks on a WebSocket, after the handshake. */
const SOCKET_ATTACKS = {
  endlessMessage: (socket: Socket) => {
    socket.write(frame(0x01, PIECE));
    endlessly(socket, frame(0x00, PIECE));
  },
  emptyMessages: (socket: Socket) =>
    endlessly(socket, Buffer.from([0x81, 0x00, 0x81, 0x00].concat(Array(2_000).fill([0x81, 0]).flat()))),
} as const;

export type AttackName = keyof typeof ATTACKS | keyof typeof SOCKET_ATTACKS;

export async function openAttacker(): Promise<Attacker> {
  const server = createServer((request, response) => {
    attacker.requests++;
    response.on('error', () => {});
    request.socket.on('error', () => {});
    request.resume();
    if (attacker.attack in SOCKET_ATTACKS) ATTACKS.none(response);
    else ATTACKS[attacker.attack as keyof typeof ATTACKS](response);
  });
  server.on('upgrade', ({ headers }, socket: Socket) => {
    attacker.requests++;
    socket.on('error', () => {});
    if (!(attacker.attack in SOCKET_ATTACKS)) {
      if (attacker.attack !== 'endlessHeaders') return void socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
      socket.write('HTTP/1.1 101 Switching Protocols\r\n');
      return endlessly(socket, `X-Padding: ${'x'.repeat(8_000)}\r\n`);
    }
    const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
    socket.write(`${head.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
    SOCKET_ATTACKS[attacker.attack as keyof typeof SOCKET_ATTACKS](socket);
  });
  const attacker: Attacker = {
    url: await listen(server),
    requests: 0,
    attack: 'none',
    close: () => void server.close().closeAllConnections(),
  };
  return attacker;
}

/** Writes as fast as the client reads. */
function endlessly(target: ServerResponse | Socket, piece: string | Buffer): void {
  const push = () => {
    while (!target.destroyed && target.write(piece));
    if (!target.destroyed) target.once('drain', push);
  };
  push();
}

/** A text frame that does not end its message. */
function frame(opcode: number, text: string): Buffer {
  const head = Buffer.alloc(10);
  head[0] = opcode;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(text.length), 2);
  return Buffer.concat([head, Buffer.from(text)]);
}
