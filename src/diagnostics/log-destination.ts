// The destination of the service's own log: a file, a pipe or a socket. One that can't be written, because its disk is full or its
// reader stands still, neither delays nor ends the service: lines wait in a bounded buffer, and those beyond it are lost and counted.
import { writeSync } from 'node:fs';

export interface LogDestinationOptions {
  /** Most bytes of lines that wait. */
  readonly bufferBytesMax: number;
  /** Called with the number of lines lost, once the destination can be written again. */
  readonly onLost: (lines: number) => void;
}

const RETRY_MS = 10;
/** After each attempt that wrote nothing the pause is twice as long, up to this. */
const RETRY_MS_MAX = 500;
/** Its reader is gone, or it was closed: it can never be written again. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'EBADF', 'ENOTCONN']);
const LINE_BREAK = 0x0a;
const EXIT_RETRIES_MAX = 50;

export class LogDestination {
  readonly #fd: number;
  readonly #options: LogDestinationOptions;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #retry: NodeJS.Timeout | undefined;
  #retryMillis = RETRY_MS;
  #isGone = false;
  #lost = 0;
  #reported = 0;

  /** `process.stdout` or `process.stderr`, whose creation has made a pipe or a socket non-blocking. */
  constructor({ fd }: { readonly fd: number }, options: LogDestinationOptions) {
    this.#fd = fd;
    this.#options = options;
  }

  /** The count since the start. */
  get lostLines(): number {
    return this.#lost;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (
      this.#isGone ||
      (this.#retry !== undefined && this.#waitingBytes + bytes.length > this.#options.bufferBytesMax)
    ) {
      this.#lost++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#retry === undefined) this.#flush();
  }

  /** Gives a slow reader half a second for the last lines; the process exits next. */
  close(): void {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let tries = 0; this.#waitingBytes > 0 && tries < EXIT_RETRIES_MAX; tries++) {
      Atomics.wait(pause, 0, 0, RETRY_MS);
      this.#flush();
    }
  }

  #flush(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    while (this.#waitingBytes > 0) {
      if (this.#writeSome()) {
        this.#retryMillis = RETRY_MS;
        continue;
      }
      if (this.#isGone) return;
      this.#retry = setTimeout(() => this.#flush(), this.#retryMillis).unref();
      this.#retryMillis = Math.min(RETRY_MS_MAX, this.#retryMillis * 2);
      return;
    }
    const lines = this.#lost - this.#reported;
    if (lines === 0) return;
    this.#reported = this.#lost;
    this.#options.onLost(lines);
  }

  #giveUp(bytes: Buffer): void {
    this.#isGone = true;
    this.#lost += bytes.reduce((lines, byte) => lines + Number(byte === LINE_BREAK), 0);
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  /** Returns false if nothing can be written now. The rest of a line that was cut stays, so that later lines stay whole. */
  #writeSome(): boolean {
    const [first] = this.#waiting;
    const bytes = this.#waiting.length === 1 ? (first as Buffer) : Buffer.concat(this.#waiting);
    try {
      const rest = bytes.subarray(writeSync(this.#fd, bytes));
      this.#waiting = rest.length > 0 ? [rest] : [];
      this.#waitingBytes = rest.length;
      return true;
    } catch (error) {
      if (GONE.has((error as NodeJS.ErrnoException).code)) this.#giveUp(bytes);
      else this.#waiting = [bytes];
      return false;
    }
  }
}
