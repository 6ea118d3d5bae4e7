// Sends and receives raw bytes for tests of misbehaving clients.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { atEnd } from './temporary.ts';

export class RawSocket {
  readonly socket: Socket;
  /** Resolves when the connection has ended, cleanly or not. */
  readonly closed: Promise<void>;
  #received = '';
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#wake();
        resolve();
      });
    });
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.#received += chunk.toString('latin1');
      this.#wake();
    });
    atEnd(() => void socket.destroy());
  }

  static async open(url: string): Promise<RawSocket> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new RawSocket(socket);
  }

  get received(): string {
    return this.#received;
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  /** Keeps writing, with backpressure, until the connection ends; returns the number of bytes written. */
  async flood(chunkOf: (index: number) => string): Promise<number> {
    for (let index = 0; this.socket.writable; index++) {
      if (!this.socket.write(chunkOf(index))) await Promise.race([this.#drained(), this.closed]);
    }
    await this.closed;
    return this.socket.bytesWritten;
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => this.socket.once('drain', resolve));
  }

  /** Resolves when the text was received (bytes as Latin-1); rejects if the connection ends first. */
  async receive(expected: RegExp | string): Promise<string> {
    const isThere = () =>
      typeof expected === 'string' ? this.#received.includes(expected) : expected.test(this.#received);
    while (!isThere()) {
      if (this.socket.closed) throw new Error(`the connection closed after ${JSON.stringify(this.#received)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#received;
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Resets the connection (RST). */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}
