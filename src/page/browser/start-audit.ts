// Starts the auditing worker and sends it the lines.
import type { Audit } from '../live-view.ts';
import type { AuditJob, AuditMessage } from './audit-worker.ts';

export const NOT_AUDITED: Audit = { checked: 0, size: 0, root: null, results: [], failure: null };

interface AuditorOptions {
  /** The URL of the worker's script. */
  readonly url: string;
  readonly job: AuditJob;
  readonly onReport: (audit: Audit) => void;
  readonly signal: AbortSignal;
}

/** Returns a function that sends lines to the worker in batches. The worker reads a file itself. */
export function startAudit({ url, job, onReport, signal }: AuditorOptions): (line: string) => void {
  const worker = startWorker(job.chain === undefined ? url : `${url}?rpc=${encodeURIComponent(job.chain.rpc)}`);
  const send = (lines: readonly string[]) => worker.postMessage({ job, lines } satisfies AuditMessage);
  signal.addEventListener('abort', () => worker.terminate());
  worker.onmessage = ({ data }: MessageEvent<Audit>) => onReport(data);
  worker.onerror = () => onReport({ ...NOT_AUDITED, failure: 'The checks could not be run in this browser.' });
  if (job.file !== undefined) send([]);
  let batch: string[] = [];
  return (line) => {
    batch.push(line);
    if (batch.length > 1) return;
    setTimeout(() => {
      send(batch);
      batch = [];
    });
  };
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

// Missing in the type library and in some browsers.
const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
const policy = trustedTypes?.createPolicy('page', { createScriptURL: ownScript });

/** Starts only scripts of the service itself. */
function startWorker(path: string): Worker {
  const { href } = new URL(path, location.href);
  return new Worker(policy?.createScriptURL(href) ?? ownScript(href), { type: 'module' });
}

function ownScript(url: string): string {
  if (new URL(url).origin !== location.origin) throw new TypeError('not a script of this service');
  return url;
}
