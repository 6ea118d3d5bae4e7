// One WebSocket as an iterable of messages. It ends when the connection does, which the reader mends by opening another.

export interface Feed extends AsyncIterable<string> {
  /** Whether the handshake succeeded: false after the end means that the service refused or was away. */
  readonly wasOpen: boolean;
  close(): void;
}

/** What browsers and `ws` have in common. */
interface Socket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  close(): void;
  /** Only `ws`. */
  terminate?(): void;
  on?(event: 'ping', listener: () => void): void;
}

/** A socket that is this far ahead of its reader is closed: the reader opens another when it has caught up. */
const BUFFERED_CHARS_MAX = 8_000_000;
const MESSAGE_BYTES_MAX = 4_000_000;
/** The service pings every 30 s. Only `ws` shows pings, so that elsewhere a silent socket is opened anew now and then. */
const SILENCE_MILLIS_MAX = 90_000;

export async function openFeed(url: string, signal: AbortSignal): Promise<Feed> {
  return new SocketFeed(await openSocket(url), signal);
}

async function openSocket(url: string): Promise<Socket> {
  if (globalThis.process?.versions?.node === undefined) return new (globalThis as unknown as Web).WebSocket(url);
  const { WebSocket } = await import('ws');
  return new WebSocket(url, { perMessageDeflate: false, maxPayload: MESSAGE_BYTES_MAX }) as unknown as Socket;
}

interface Web {
  readonly WebSocket: new (url: string) => Socket;
}

class SocketFeed implements Feed {
  wasOpen = false;
  readonly #socket: Socket;
  readonly #signal: AbortSignal;
  readonly #close = () => this.close();
  #messages: string[] = [];
  #bufferedChars = 0;
  #isEnded = false;
  #wake: () => void = () => {};
  #silence: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
    socket.onopen = () => {
      this.wasOpen = true;
    };
    socket.onmessage = ({ data }: { readonly data: unknown }) => this.#receive(data);
    socket.onclose = this.#close;
    socket.onerror = this.#close;
    socket.on?.('ping', () => this.#listen());
    signal.addEventListener('abort', this.#close, { once: true });
    this.#listen();
    if (signal.aborted) this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    while (true) {
      const messages = this.#messages;
      this.#messages = [];
      this.#bufferedChars = 0;
      yield* messages;
      if (this.#messages.length > 0) continue;
      if (this.#isEnded) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#silence);
    this.#signal.removeEventListener('abort', this.#close);
    // A handshake that is cut short is an error event of `ws` too, which must find a listener.
    if (this.#socket.terminate === undefined) this.#socket.close();
    else this.#socket.terminate();
    this.#wake();
  }

  #receive(data: unknown): void {
    if (this.#isEnded) return;
    if (typeof data === 'string') {
      this.#messages.push(data);
      this.#bufferedChars += data.length;
    }
    // The service sends text only: anything else is not its stream.
    if (typeof data !== 'string' || this.#bufferedChars > BUFFERED_CHARS_MAX) this.close();
    else this.#listen();
    this.#wake();
  }

  #listen(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(this.#close, SILENCE_MILLIS_MAX);
  }
}
