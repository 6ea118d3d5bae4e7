// A chamber's lines over a WebSocket, from the first one on and across reconnections.

const RETRY_MILLIS_MIN = 500;
const RETRY_MILLIS_MAX = 15_000;

export interface LogListener {
  /** Every line as sent, without a line break. */
  readonly onLine: (line: string) => void;
  readonly onConnection: (isConnected: boolean) => void;
  /** Ends it; otherwise it continues forever. */
  readonly signal: AbortSignal;
}

/** `address` is that of the stream, without a query. */
export function followLog(address: string, { onLine, onConnection, signal }: LogListener): void {
  let received = 0;
  let wait = RETRY_MILLIS_MIN;
  let socket: WebSocket | undefined;
  signal.addEventListener('abort', () => socket?.close());
  const open = () => {
    if (signal.aborted) return;
    socket = new WebSocket(`${address}?after=${received}`);
    socket.onmessage = ({ data }) => {
      received++;
      wait = RETRY_MILLIS_MIN;
      onLine(String(data));
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
