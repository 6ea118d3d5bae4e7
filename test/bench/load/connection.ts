// A minimal keep-alive HTTP/1.1 connection for a load generator, so that the cores are left to the service.
import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly status: number;
  /** The status line and the headers. */
  readonly head: string;
  readonly body: Buffer;
}

const HEAD_END = '\r\n\r\n';
const CHUNKS_END = '\r\n0\r\n\r\n';
const STATUS_AT = 9;

export class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #onAnswer: ((answer: Answer) => void) | undefined;
  #onFailure: ((error: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', (error) => this.#onFailure?.(error));
    socket.on('close', () => this.#onFailure?.(new Error('the service closed the connection')));
  }

  static open(authority: string): Promise<Connection> {
    const { hostname, port } = new URL(`http://${authority}`);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => resolve(new Connection(socket)));
      socket.once('error', reject);
    });
  }

  /** Sends one request at a time: the next one after the response to the previous one. */
  send(request: Buffer, onAnswer: (answer: Answer) => void): void {
    this.#onAnswer = onAnswer;
    if (this.#socket.destroyed) this.#onFailure?.(new Error('the service had closed the connection'));
    else this.#socket.write(request);
  }

  exchange(request: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#onFailure = reject;
      this.send(request, resolve);
    });
  }

  onFailure(listener: (error: Error) => void): void {
    this.#onFailure = listener;
  }

  close(): void {
    this.#onFailure = undefined;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const answer = parseAnswer(this.#received);
    if (answer === undefined) return;
    this.#received = Buffer.alloc(0);
    this.#onAnswer?.(answer);
  }
}

/** Returns the response in these bytes once it is complete. */
function parseAnswer(bytes: Buffer): Answer | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd === -1) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const start = headEnd + HEAD_END.length;
  const status = Number(head.slice(STATUS_AT, STATUS_AT + 3));
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(head) ?? [];
  if (length === undefined)
    return bytes.includes(CHUNKS_END, headEnd) ? { status, head, body: unchunk(bytes, start) } : undefined;
  const end = start + Number(length);
  return bytes.length < end ? undefined : { status, head, body: bytes.subarray(start, end) };
}

function unchunk(bytes: Buffer, start: number): Buffer {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const length = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (!(length > 0)) return Buffer.concat(chunks);
    chunks.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + length));
    at = lineEnd + 2 + length + 2;
  }
}
