// A chamber's lines over a WebSocket, from the first one on and across reconnections.

const RETRY_MILLIS_MIN = 500;
const RETRY_MILLIS_MAX = 15_000;

export interface LogListener {
  /** Every line as sent, without a line break. */
  readonly onLine: (line: string) => void;
  /** The service's time, whenever the phase changes. */
  readonly onPhase: (at: number) => void;
  readonly onConnection: (isConnected: boolean) => void;
  /** Ends it; otherwise it continues forever. */
  readonly signal: AbortSignal;
}

/** `address` is that of the stream, without a query. */
export function followLog(address: string, { onLine, onPhase, onConnection, signal }: LogListener): void {
  let received = 0;
  let wait = RETRY_MILLIS_MIN;
  let socket: WebSocket | undefined;
  signal.addEventListener('abort', () => socket?.close());
  const open = () => {
    if (signal.aborted) return;
    socket = new WebSocket(`${address}?after=${received}&notes=1`);
    socket.onmessage = ({ data }) => {
      const text = String(data);
      wait = RETRY_MILLIS_MIN;
      const note = noteOf(text);
      if (note !== undefined) return onPhase(Date.parse(note.at ?? note.now ?? ''));
      received++;
      onLine(text);
    };
    socket.onopen = () => onConnection(true);
    socket.onclose = () => {
      onConnection(false);
      setTimeout(open, wait);
      wait = Math.min(RETRY_MILLIS_MAX, wait * 2);
    };
  };
  open();
}

/** A message between the lines (see the stream's `notes`): of a phase that begins, or that the reader has caught up. */
interface Note {
  readonly at?: string;
  readonly now?: string;
}

/** Whatever else comes is a line, which the auditor judges. */
function noteOf(text: string): Note | undefined {
  if (!text.startsWith('{"note":')) return undefined;
  try {
    return JSON.parse(text) as Note;
  } catch {
    return undefined;
  }
}
