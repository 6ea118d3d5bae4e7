// A WebSocket consumer that only counts: it finds frames by their headers and ignores payloads.
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { FrameCounter } from './frame-counter.ts';

export interface SubscriberOptions {
  readonly authority: string;
  /** A path such as /chambers/1/stream?after=0. */
  readonly path: string;
  /** Called with the number of messages just completed. */
  readonly onMessages: (count: number) => void;
  readonly onEnd: (error: Error) => void;
}

const READ_BYTES = 1_048_576;
/** A read buffer that all consumers of the process share, which is safe because reads are synchronous. */
const shared = Buffer.allocUnsafe(READ_BYTES);
const HEAD_END = '\r\n\r\n';
/** An empty pong, masked with zeros, since clients must mask. */
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);

/** Resolves to the socket once the service has accepted the handshake; counting starts with the first byte after it. */
export function subscribe({ authority, path, onMessages, onEnd }: SubscriberOptions): Promise<Socket> {
  const { hostname, port } = new URL(`http://${authority}`);
  return new Promise((resolve, reject) => {
    let head = '';
    let isOpen = false;
    const frames = new FrameCounter(onMessages, () => socket.write(PONG));
    const fail = (error: Error) => (isOpen ? onEnd(error) : reject(error));
    const socket = connect({ host: hostname, port: Number(port), onread: { buffer: shared, callback: read } });
    socket.once('error', fail);
    socket.once('close', () => fail(new Error('the service closed the stream')));
    socket.write(handshake(authority, path));

    function read(length: number, bytes: Uint8Array): boolean {
      const received = bytes.subarray(0, length) as Buffer;
      if (isOpen) frames.push(received);
      else open(received);
      return true;
    }

    function open(received: Buffer): void {
      head += received.toString('latin1');
      const end = head.indexOf(HEAD_END);
      if (end === -1) return;
      if (!head.startsWith('HTTP/1.1 101 ')) {
        reject(new Error(`the response to the handshake was ${head.slice(0, 300)}`));
        return;
      }
      isOpen = true;
      frames.push(Buffer.from(head.slice(end + HEAD_END.length), 'latin1'));
      resolve(socket);
    }
  });
}

function handshake(authority: string, path: string): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${authority}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
  ];
  return `${lines.join('\r\n')}${HEAD_END}`;
}
