// Runs the auditor's core without Node's APIs, as in a browser: no imports, no Buffer, no process.
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { rolldown } from 'rolldown';
import type { AuditPolicy } from '../../src/audit/policy.ts';
import type { CheckResult } from '../../src/audit/report/findings.ts';

const CORE = fileURLToPath(new URL('../../src/audit/core.ts', import.meta.url));
const CORE_AND_READER = fileURLToPath(new URL('browser-entry.ts', import.meta.url));

/** Bundles the core into one file for browsers, without polyfills. */
export async function bundleCore(input = CORE) {
  const bundle = await rolldown({ input, platform: 'browser', onLog: () => undefined });
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
  return output[0];
}

/**
 * Removes all globals that browsers lack before it loads the core; requests arrive over a message port. It caches keys and
 * transactions, because most audits share them and their curve arithmetic would dominate.
 */
const PROGRAM = `
  import { parentPort, workerData } from 'node:worker_threads';
  for (const name of ['Buffer', 'process', 'global', 'setImmediate', 'clearImmediate']) delete globalThis[name];
  const { ChamberAudit, auditContext, checkedVerify, compareAccounts, createWebVerify, listedAccounts, readLines, readTransaction: read } =
    await import(workerData);
  const verify = checkedVerify(createWebVerify());
  const keys = new Map();
  const LATER = { now: () => Date.UTC(9999, 0, 1), isStated: false };
  const transactions = new Map();
  const readTransaction = (raw) => transactions.get(raw) ?? transactions.set(raw, read(raw)).get(raw);
  const linesOf = (bytes) => readLines((async function* () { yield bytes; })());
  async function audit({ bytes, policy, accounts }) {
    const audit = new ChamberAudit({ context: { ...auditContext(policy, verify, LATER), keys }, readTransaction });
    await audit.takeAll(linesOf(bytes));
    audit.conclude();
    await compareAccounts(audit, accounts && (await listedAccounts(linesOf(accounts), audit.context)));
    return audit.findings.results();
  }
  let last;
  parentPort.on('message', (request) => {
    last = Promise.resolve(last).then(() => audit(request)).catch((error) => String(error.stack));
    last.then((answer) => parentPort.postMessage(answer));
  });`;

interface Request {
  readonly bytes: Uint8Array;
  readonly policy: AuditPolicy;
  readonly accounts?: Uint8Array | undefined;
}

type Answer = readonly CheckResult[] | string;

let worker: Promise<Worker> | undefined;
/** One per expected response, in the order in which responses arrive. */
const waiting: ((answer: Answer) => void)[] = [];

export async function auditInBrowser(request: Request): Promise<readonly CheckResult[]> {
  worker ??= startWorker();
  const started = await worker;
  const answer = await new Promise<Answer>((resolve) => {
    waiting.push(resolve);
    started.postMessage(request);
  });
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

async function startWorker(): Promise<Worker> {
  const { code } = await bundleCore(CORE_AND_READER);
  const program = new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`);
  const worker = new Worker(program, { workerData: `data:text/javascript,${encodeURIComponent(code)}` });
  worker.on('message', (answer: Answer) => waiting.shift()?.(answer));
  worker.on('error', (error) => {
    for (const resolve of waiting.splice(0)) resolve(String(error));
  });
  worker.unref();
  return worker;
}
