// Compares what a chamber's events say about its members' accounts with those accounts.
import { forEachAtOnce } from '../at-once.ts';
import type { ContractProof } from '../chain/recorded-block.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import type { AuditContext } from '../context.ts';
import type { Outcome, Problem } from '../report/findings.ts';
import type { AccountEntry, AccountLog, Accounts } from './accounts.ts';
import { type AccountReference, isOfNamingType, type RecordedAccount, walletIn } from './references.ts';

/** A decision may be made on an account that was changed a moment before it was written. */
const LAG_MILLIS = 5_000;
const AGENTS_NAMED_MAX = 3;

/** Asks the chain about a contract's signature; without it, accounts with such are not evaluated. */
export type JudgeContractProof = (proof: ContractProof) => Promise<Outcome>;

export async function compareAccounts(
  audit: ChamberAudit,
  accounts: Accounts | undefined,
  judgeProof?: JudgeContractProof,
): Promise<void> {
  const { findings, accountReferences } = audit;
  if (accounts === undefined) {
    return findings.notEvaluated('the lines hold no accounts: use --accounts', 'registration');
  }
  const { copyProblem } = accounts;
  if (copyProblem !== undefined) findings.judge('registration', [], `of the file of accounts, ${copyProblem}`);
  /** Agents whose wallet no signed line shows. */
  const unsigned = new Set<string>();
  const ofContracts: (readonly [AccountReference, AccountLog])[] = [];
  for (const reference of accountReferences) {
    const { eventId, lastEventId, did, accountEventId } = reference;
    const account = await accounts.of(did);
    const retired = account && problemOfRetirement(reference, account);
    if (retired !== undefined) {
      findings.judge('registration', [lastEventId], `event ${lastEventId}: ${retired}`);
      continue;
    }
    // Earlier releases named no account line there; whether this one should have is found without accounts.
    if (accountEventId === undefined && !isOfNamingType(reference)) continue;
    if (accountEventId === undefined) {
      const foreign = account && foreignWallet(reference, account);
      if (foreign !== undefined) findings.judge('registration', [eventId], `event ${eventId}: ${foreign}`);
      else findings.notEvaluated(`event ${eventId} names no account line: an earlier release wrote it`, 'registration');
      continue;
    }
    const problem = account === undefined ? undefined : problemOf({ ...reference, accountEventId }, account);
    if (problem !== undefined) findings.judge('registration', [eventId, lastEventId], `event ${eventId}: ${problem}`);
    else if (account?.entries[accountEventId - account.firstEventId]?.isSigned !== true) unsigned.add(did);
    else if (account.doubt !== undefined) findings.undecided('registration', account.doubt);
    else if (account.contractProofs.length > 0) ofContracts.push([reference, account]);
    else judgeOrigins(audit, reference, account);
  }
  await judgeContracts(audit, ofContracts, judgeProof);
  if (unsigned.size === 0) return;
  const named = [...unsigned].slice(0, AGENTS_NAMED_MAX).join(', ') + (unsigned.size > AGENTS_NAMED_MAX ? ' …' : '');
  findings.notEvaluated(`no signed line shows the wallet of ${unsigned.size} agents: ${named}`, 'registration');
}

/** Accounts whose lines hold what contracts have accepted. */
async function judgeContracts(
  audit: ChamberAudit,
  named: readonly (readonly [AccountReference, AccountLog])[],
  judgeProof: JudgeContractProof | undefined,
): Promise<void> {
  const { findings, context } = audit;
  const { contractProofs: judged } = context;
  const left = new Set(named.flatMap(([, account]) => account.contractProofs.filter((proof) => !judged.has(proof))));
  if (judgeProof) await forEachAtOnce(left, async (proof) => void judged.set(proof, await judgeProof(proof)));
  for (const [reference, account] of named) {
    const { eventId, did } = reference;
    const problems = account.contractProofs.map((proof) => contractProblem(proof, did, judged));
    const problem = problems.find((each) => typeof each === 'string') ?? problems.find((each) => each !== undefined);
    if (problem === undefined) judgeOrigins(audit, reference, account);
    else findings.settle('registration', [eventId], problem, typeof problem === 'string' ? `event ${eventId}: ` : '');
  }
}

function contractProblem(proof: ContractProof, did: string, judged: AuditContext['contractProofs']): Problem {
  const { eventId, wallet, chainId, blockNumber } = proof;
  const named = `event ${eventId} of the account of ${did}`;
  if (!judged.has(proof)) {
    const question = `whether it accepted the signature at block ${blockNumber} of chain ${chainId}`;
    return { open: `the wallet ${wallet} of ${named} is a contract: ${question} only the chain shows (--rpc)` };
  }
  const outcome = judged.get(proof);
  if (typeof outcome === 'object') return { doubt: `${named}: ${outcome.doubt}` };
  return outcome && `${named}: ${outcome}`;
}

/** A wallet that the account never had until then, or none, where all of it is published. */
function foreignWallet({ at, recorded }: AccountReference, account: AccountLog): string | undefined {
  const { entries, firstEventId, problem } = account;
  if (problem !== undefined || firstEventId !== 1 || entries.length === 0) return problem;
  const past = entries.filter((entry) => entry.at <= at);
  if (past.length === 0) return 'its agent was not registered yet';
  const wallet = walletIn(recorded);
  if (wallet === undefined || past.some(({ walletAddress }) => walletAddress === wallet)) return undefined;
  return `creatorWallet is ${wallet}, which its account did not bind before`;
}

/** A retired key makes no moves, whichever line of its account they name. */
function problemOfRetirement(
  { did, lastAt, accountEventId = 0 }: AccountReference,
  account: AccountLog,
): string | undefined {
  const retirement = account.entries.at(-1);
  if (retirement === undefined || !retirement.isRetirement) return undefined;
  const eventId = account.firstEventId + account.entries.length - 1;
  const named = `event ${eventId} of the account of ${did}`;
  if (accountEventId >= eventId) return `it names ${named}, which retired the key`;
  const late = lastAt - retirement.at;
  return late > LAG_MILLIS ? `it is ${late / 1000} s younger than ${named}, which retired the key` : undefined;
}

type Named = AccountReference & { readonly accountEventId: number };

function problemOf({ did, at, lastAt, accountEventId, recorded }: Named, account: AccountLog): string | undefined {
  if (account.problem !== undefined) return account.problem;
  const { entries, firstEventId } = account;
  const named = `event ${accountEventId} of the account of ${did}`;
  const index = accountEventId - firstEventId;
  const entry: AccountEntry | undefined = entries[index];
  if (index < 0) return undefined;
  if (entry === undefined) return `it names ${named}, which does not exist`;
  if (entry.at > at) return `it is earlier than ${named}, which it names`;
  const next = entries[index + 1];
  if (next !== undefined && lastAt - next.at > LAG_MILLIS) {
    return `it names ${named}, although event ${accountEventId + 1} is ${(lastAt - next.at) / 1000} s older than it`;
  }
  if (entry.walletAddress === undefined) return undefined;
  const bound: RecordedAccount = { ...entry, creatorWallet: entry.walletAddress };
  for (const [member, value] of Object.entries(recorded) as [keyof RecordedAccount, RecordedValue][]) {
    if (value === bound[member]) continue;
    return `${member} is ${value}, but ${named} binds ${bound[member]}`;
  }
  return undefined;
}

type RecordedValue = RecordedAccount[keyof RecordedAccount];

/** A binding that was signed for another service is none. */
function judgeOrigins(
  { findings, context }: ChamberAudit,
  { eventId, did }: AccountReference,
  account: AccountLog,
): void {
  const foreign = [...account.origins].find((origin) => !context.origins.take(origin));
  if (foreign !== undefined) {
    const problem = `event ${eventId}: the account of ${did} was signed for ${foreign}, which is not named`;
    findings.judge('registration', [eventId], problem);
  } else if (context.origins.doubt !== undefined) findings.undecided('registration', context.origins.doubt);
  else findings.judge('registration', [eventId]);
}
