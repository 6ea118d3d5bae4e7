// Bytes to a server and back, for clients that do not behave.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { atEnd } from './temporary.ts';

export class RawSocket {
  readonly socket: Socket;
  /** Once the connection has ended, in whatever way. */
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

  /** Resolves when the pattern was received; throws when the connection ends before. */
  async receive(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#received)) {
      if (this.socket.closed) throw new Error(`closed after ${JSON.stringify(this.#received)}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#received;
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Ends the connection by RST. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}
