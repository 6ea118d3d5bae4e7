// A chamber's lines over a WebSocket, from the first one on and across reconnections.
import { backoffMillis } from '../../reading/waiting.ts';
import { instantOf } from '../../vocabulary/values.ts';

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
  let failures = 0;
  let socket: WebSocket | undefined;
  signal.addEventListener('abort', () => socket?.close());
  const open = () => {
    if (signal.aborted) return;
    socket = new WebSocket(`${address}?after=${received}&notes=1`);
    socket.onmessage = ({ data }) => {
      const text = String(data);
      failures = 0;
      const note = noteOf(text);
      if (note !== undefined) return onPhase(instantOf(note.at ?? note.now ?? ''));
      received++;
      onLine(text);
    };
    socket.onopen = () => onConnection(true);
    socket.onclose = () => {
      onConnection(false);
      // With jitter: when a service restarts, all its readers have lost their connections at once.
      setTimeout(open, backoffMillis(failures++));
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
