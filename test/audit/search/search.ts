// Searches for forgeries that the auditor calls sound: it alters honest histories at random, and expects the auditor to detect
// each change that lines can show.
import { type Accounts, listedAccounts } from '../../../src/audit/account/accounts.ts';
import { compareAccounts } from '../../../src/audit/account/compare-accounts.ts';
import { ChamberAudit } from '../../../src/audit/chamber/chamber-audit.ts';
import { type AuditContext, auditContext } from '../../../src/audit/context.ts';
import { readLines, UnusableInput } from '../../../src/audit/line/input.ts';
import { ProofFolder } from '../../../src/audit/receipts/proof-folder.ts';
import { ReceiptChecks, reportAccountReceipts, reportReceipts } from '../../../src/audit/receipts/receipt-checks.ts';
import { CHECK_NAMES } from '../../../src/audit/report/findings.ts';
import { Random } from '../../kit/random.ts';
import { keys, type Line, readOnce, verifyOnce } from '../forge.ts';
import { type Change, changesOf } from './changes.ts';
import { differencesOf } from './differences.ts';
import { Draft } from './draft.ts';
import { type History, histories } from './histories.ts';
import { limitOf } from './limits.ts';
import { compareTurns } from './turns.ts';

export interface Forgery {
  readonly history: string;
  /** Repeats the change if passed as `only` to the search. */
  readonly seed: number;
  readonly descriptions: readonly string[];
  /** Differences that no limit covers, or a problem found by the model of turns. */
  readonly unexplained: readonly string[];
  readonly texts: Texts;
}

export interface Searched {
  readonly changes: number;
  readonly found: number;
  /** How often each limit covered an undetected change. */
  readonly limits: ReadonlyMap<string, number>;
  readonly turnsCompared: number;
  readonly forgeries: readonly Forgery[];
}

interface SearchOptions {
  /** Defaults to histories(). */
  readonly from?: readonly History[] | undefined;
  readonly seed: number;
  readonly changes: number;
  /** Measured in CPU time, so that a busy machine makes as many changes as an idle one. */
  readonly cpuMillisMax?: number | undefined;
  /** Makes only this change. */
  readonly only?: number | undefined;
  readonly onProgress?: ((searched: Searched) => void) | undefined;
}

type Texts = Awaited<ReturnType<Draft['texts']>>;

const FORGERIES_MAX = 20;
const PROGRESS_CHANGES = 5_000;

export async function search({
  from,
  seed,
  changes,
  cpuMillisMax = Number.POSITIVE_INFINITY,
  only,
  onProgress,
}: SearchOptions): Promise<Searched> {
  const all = from ?? (await histories());
  const possible = changesOf(all);
  const searched = {
    changes: 0,
    found: 0,
    limits: new Map<string, number>(),
    turnsCompared: 0,
    forgeries: [] as Forgery[],
  };
  const startedAt = process.cpuUsage();
  const isInTime = () => cpuMillisSince(startedAt) < cpuMillisMax;
  for (let index = 0; searched.changes < changes && isInTime(); index++) {
    await makeChange(searched, all, possible, only ?? seed * 0x1000_0000 + index);
    if (only !== undefined || searched.forgeries.length >= FORGERIES_MAX) break;
    if (searched.changes > 0 && searched.changes % PROGRESS_CHANGES === 0) onProgress?.(searched);
  }
  return searched;
}

function cpuMillisSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

export async function honestVerdicts(from?: readonly History[]): Promise<readonly (readonly [string, boolean])[]> {
  const all = from ?? (await histories());
  return await Promise.all(
    all.map(async (history) => [history.name, await isSound(history, await new Draft(history).texts())] as const),
  );
}

type Mutable = { -readonly [Member in keyof Searched]: Searched[Member] } & {
  readonly limits: Map<string, number>;
  readonly forgeries: Forgery[];
};

async function makeChange(
  searched: Mutable,
  all: readonly History[],
  possible: readonly Change[],
  seed: number,
): Promise<void> {
  const random = new Random(seed);
  const history = random.pick(all);
  const draft = new Draft(history);
  for (let wanted = random.pick([1, 1, 2, 2, 2, 3, 4]); wanted > 0; wanted--)
    await random.pick(possible)(draft, random);
  draft.isRechained = random.chance(0.9);
  draft.signsStubs = draft.isRechained && random.chance(0.5);
  draft.isRecommitted =
    draft.isRechained && random.chance(0.5) && history.lines.some(({ type }) => type === 'chamber.committed');
  const texts = await draft.texts();
  if (!(await isSound(history, texts))) {
    searched.changes++;
    searched.found++;
    return;
  }
  const differences = differencesOf(draft);
  if (differences.length === 0) return;
  searched.changes++;
  const reasons = differences.map((difference) => [difference, limitOf(difference, draft)] as const);
  const unexplained = reasons.filter(([, why]) => why === undefined).map(([difference]) => inWords(difference));
  const { count, problem } = compareTurns(parsed(texts.lines));
  searched.turnsCompared += count;
  if (problem !== undefined) unexplained.push(problem);
  for (const why of new Set(reasons.flatMap(([, why]) => why ?? [])))
    searched.limits.set(why, (searched.limits.get(why) ?? 0) + 1);
  if (unexplained.length > 0)
    searched.forgeries.push({ history: history.name, seed, descriptions: draft.descriptions, unexplained, texts });
}

function inWords({ kind, did, line, ...more }: ReturnType<typeof differencesOf>[number]): string {
  const path = 'path' in more ? ` ${more.path}` : 'place' in more ? ` at ${more.place}` : '';
  return `${String(line['type'])}${did === undefined ? '' : ` of ${did.slice(-4)}`} ${kind}${path}`;
}

function parsed(text: string): Line[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

const NOWHERE = new ProofFolder('/nonexistent');

/** Returns whether the auditor would exit with 0. */
async function isSound(
  { receipts, judgeProof, askChain, policy = {} }: History,
  { lines, accounts }: Texts,
): Promise<boolean> {
  const context: AuditContext = { ...auditContext(policy, verifyOnce), keys };
  const checks = receipts && new ReceiptChecks(receipts);
  const audit = new ChamberAudit({ context, readTransaction: readOnce, onEvent: (...taken) => checks?.take(...taken) });
  try {
    // Most forgeries are detected within their first lines, and auditing the rest takes most of the time.
    for await (const line of readLines(bytesOf(lines))) {
      await audit.take(line);
      if (isBroken(audit)) return false;
    }
    const judged = checks?.judge(audit.decisions.state?.chamberId);
    if (judged !== undefined) await reportReceipts(audit.findings, judged, NOWHERE);
    audit.conclude({ asksChain: askChain !== undefined });
    if (isBroken(audit)) return false;
    await compareAccounts(audit, await accountsOf(accounts, context, checks), judgeProof);
    if (!isBroken(audit)) await askChain?.(audit);
    if (checks !== undefined) await reportAccountReceipts(audit.findings, checks, NOWHERE);
  } catch (error) {
    if (error instanceof UnusableInput) return false;
    throw error;
  }
  return audit.findings.results().every(({ verdict }) => verdict === 'verified' || verdict === 'not evaluated');
}

function isBroken({ findings }: ChamberAudit): boolean {
  return CHECK_NAMES.some((name) => findings.isBroken(name));
}

async function accountsOf(
  text: string | undefined,
  context: AuditContext,
  checks: ReceiptChecks | undefined,
): Promise<Accounts | undefined> {
  if (text === undefined) return undefined;
  return await listedAccounts(readLines(bytesOf(text)), context, { onLine: checks?.take });
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  if (text !== '') yield Buffer.from(text);
}
