// Reads all lines of a chamber over a WebSocket, and resumes after a disconnect.
import { backoffMillis } from '../../reading/waiting.ts';
import { instantOf } from '../../vocabulary/values.ts';

export interface LogListener {
  /** Called with each line as sent, without its line break. */
  readonly onLine: (line: string) => void;
  /** Called with the service's time when the reader has caught up and when the phase changes. */
  readonly onPhase: (at: number) => void;
  readonly onConnection: (isConnected: boolean) => void;
  /** Called when the text of a delivered line is withheld. */
  readonly onWithheld: () => void;
  readonly signal: AbortSignal;
}

/** Reads until the signal aborts. `address` is the stream's URL without a query. */
export function followLog(address: string, { onLine, onPhase, onConnection, onWithheld, signal }: LogListener): void {
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
      if (note?.note === 'withheld') return onWithheld();
      if (note !== undefined) return onPhase(instantOf(note.at ?? note.now ?? ''));
      received++;
      onLine(text);
    };
    socket.onopen = () => onConnection(true);
    socket.onclose = () => {
      onConnection(false);
      // Uses jitter, because a restart of the service disconnects all its readers at once.
      setTimeout(open, backoffMillis(failures++));
    };
  };
  open();
}

/** A message between the lines (`notes=1`): a phase begins, the reader has caught up, or a text is withheld. */
interface Note {
  readonly note: string;
  readonly at?: string;
  readonly now?: string;
}

/** Returns undefined for any other message: it is a line, which the auditor judges. */
function noteOf(text: string): Note | undefined {
  if (!text.startsWith('{"note":')) return undefined;
  try {
    return JSON.parse(text) as Note;
  } catch {
    return undefined;
  }
}
