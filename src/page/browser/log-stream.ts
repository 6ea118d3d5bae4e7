// Reads all lines of a chamber over a WebSocket, and resumes after a disconnect.
import { backoffMillis } from '../../reading/waiting.ts';
import { instantOf } from '../../vocabulary/values.ts';

export interface LogListener {
  /** Each line as sent, without a line break. */
  readonly onLine: (line: string) => void;
  /** The service's time, whenever the phase changes. */
  readonly onPhase: (at: number) => void;
  readonly onConnection: (isConnected: boolean) => void;
  /** The text of a line that was delivered is withheld now. */
  readonly onWithheld: () => void;
  readonly signal: AbortSignal;
}

/** `address` is the stream's, without a query. Reads until the signal aborts. */
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

/** Any other message is a line, which the auditor judges. */
function noteOf(text: string): Note | undefined {
  if (!text.startsWith('{"note":')) return undefined;
  try {
    return JSON.parse(text) as Note;
  } catch {
    return undefined;
  }
}
