// Judges receipts without auditing their chambers: against the lines and proofs of a service, or against exported lines.
import { createReadStream } from 'node:fs';
import { verifyTlogProof } from '../../tlog/proof.ts';
import { COVERED_SECONDS_MAX, type Millis } from '../../vocabulary/values.ts';
import { readLines } from '../line/input.ts';
import { readAny, readRecord } from '../line/record.ts';
import { verdictOfProblem } from '../report/findings.ts';
import { orUndefined, ServiceLog } from '../service/service-log.ts';
import { AuditedService } from '../service/service-reader.ts';
import type { GivenReceipts } from './given-receipts.ts';
import { ReceiptAudit } from './receipt-audit.ts';
import { type JudgedReceipt, ReceiptChecks } from './receipt-checks.ts';

/** A receipt is verified if the service has its line and proves that the log contains it. Throws UnusableInput and Unreachable. */
export async function judgeByService(
  receipts: GivenReceipts,
  url: string,
  now: Millis,
): Promise<readonly JudgedReceipt[]> {
  const service = new AuditedService(url);
  const log = new ServiceLog(service);
  const audit = new ReceiptAudit(service, log, receipts);
  const judged: JudgedReceipt[] = [];
  for (const chamberId of chambersIn(receipts)) {
    const checks = new ReceiptChecks(receipts);
    // A service that returns no lines lacks the receipts' events.
    await checks.takeLines(service.lines(chamberId, 0), readRecord).catch(orUndefined);
    judged.push(...checks.judge(chamberId, await audit.terms()));
  }
  judged.push(...(await audit.judgeOthers(chambersIn(receipts))));
  const proved: JudgedReceipt[] = [];
  // Sequential, because a service limits the requests per address.
  for (const receipt of judged) proved.push(await requireLogged(receipt, log, now));
  return proved;
}

/** A receipt is verified if the file contains its line. Receipts of other streams are not evaluated. */
export async function judgeByLines(receipts: GivenReceipts, path: string): Promise<readonly JudgedReceipt[]> {
  const checks = new ReceiptChecks(receipts);
  const stream = await checks.takeLines(readLines(createReadStream(path)), readAny);
  const judged = new Map(checks.judge(stream).map((receipt) => [receipt.kept, receipt]));
  const problem = { needs: 'service', why: 'the lines belong to another stream' } as const;
  const notEvaluated = { isFromService: false, problem, ...verdictOfProblem(problem), line: undefined };
  return receipts.all.map((given) => judged.get(given.kept) ?? { ...given, ...notEvaluated });
}

function chambersIn(receipts: GivenReceipts): ReadonlySet<number> {
  return new Set(receipts.all.map(({ parsed }) => parsed.stream).filter((stream) => typeof stream === 'number'));
}

async function requireLogged(receipt: JudgedReceipt, log: ServiceLog, now: Millis): Promise<JudgedReceipt> {
  const key = receipt.verdict === 'verified' ? await log.find() : undefined;
  if (key === undefined) return receipt;
  const { stream, eventId, leaf, created } = receipt.parsed;
  const proof = await log.tlogProof(stream, eventId);
  if (proof !== undefined && verifyTlogProof(proof, leaf, key.key) !== undefined) return receipt;
  const why = proof === undefined ? 'no checkpoint covers it' : 'the service does not prove that its log contains it';
  const isDue = proof !== undefined || now > (created + COVERED_SECONDS_MAX) * 1_000;
  const problem = isDue ? why : ({ needs: 'later lines', why } as const);
  return { ...receipt, problem, ...verdictOfProblem(problem) };
}
