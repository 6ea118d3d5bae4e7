// Writes the service's own log to a file, a pipe or a socket. A full disk or a stalled reader neither delays nor stops the service: lines wait
// in a bounded buffer, and further lines are dropped and counted.
import { writeSync } from 'node:fs';

export interface LogDestinationOptions {
  readonly bufferBytesMax: number;
  /** Called with the number of lost lines once writing works again. */
  readonly onLost: (lines: number) => void;
}

const RETRY_MS = 10;
/** The pause doubles after each failure, up to this value. */
const RETRY_MS_MAX = 500;
/** The reader has gone or the descriptor was closed, so no later write can succeed. */
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

  /** Takes `process.stdout` or `process.stderr`: accessing these makes a pipe or socket non-blocking. */
  constructor({ fd }: { readonly fd: number }, options: LogDestinationOptions) {
    this.#fd = fd;
    this.#options = options;
  }

  get lostLines(): number {
    return this.#lost;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    const isFull = this.#retry !== undefined && this.#waitingBytes + bytes.length > this.#options.bufferBytesMax;
    if (this.#isGone || isFull) {
      this.#lost++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#retry === undefined) this.#flush();
  }

  /** Blocks for up to half a second, so that a slow reader gets the last lines before the process exits. */
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

  /** Returns false if nothing can be written now. Keeps the rest of a partly written line, so that later lines stay intact. */
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
