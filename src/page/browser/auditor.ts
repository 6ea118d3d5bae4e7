// The worker that audits, as the page uses it.
import type { Audit } from '../live-view.ts';
import type { AuditJob, AuditMessage } from './audit-worker.ts';
import { startWorker } from './start-worker.ts';

export const NOT_AUDITED: Audit = { checked: 0, size: 0, root: null, results: [], failure: null };

interface AuditorOptions {
  /** Of the worker's script. */
  readonly url: string;
  readonly job: AuditJob;
  readonly onReport: (audit: Audit) => void;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** Returns what hands a line to the worker: several at once go in one message. A file is read by the worker itself. */
export function startAudit({ url, job, onReport, signal }: AuditorOptions): (line: string) => void {
  const worker = startWorker(job.chain === undefined ? url : `${url}?rpc=${encodeURIComponent(job.chain.rpc)}`);
  const send = (lines: readonly string[]) => worker.postMessage({ job, lines } satisfies AuditMessage);
  signal.addEventListener('abort', () => worker.terminate());
  worker.onmessage = ({ data }: MessageEvent<Audit>) => onReport(data);
  worker.onerror = () => onReport({ ...NOT_AUDITED, failure: 'The checks could not be run in this browser.' });
  if (job.file !== undefined) send([]);
  let waiting: string[] = [];
  return (line) => {
    waiting.push(line);
    if (waiting.length > 1) return;
    setTimeout(() => {
      send(waiting);
      waiting = [];
    });
  };
}
