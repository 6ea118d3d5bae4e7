// Compares the account data recorded in a chamber's events with the members' accounts.

import { toTimestamp } from '../../vocabulary/values.ts';
import { type ContractProof, forEachConcurrently } from '../chain/recorded-block.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import { type AuditContext, isAhead } from '../context.ts';
import { mostSevere, type Outcome, type Problem } from '../report/findings.ts';
import type { AccountLog, Accounts } from './accounts.ts';
import { type AccountReference, isNamingType, type RecordedAccount, walletIn } from './references.ts';

/** A decision may use an account state that was replaced just before the line was written. */
const LAG_MILLIS = 5_000;
const AGENTS_NAMED_MAX = 3;

/** Asks the chain about a contract signature. Without this function, accounts with contract signatures are not evaluated. */
export type JudgeContractProof = (proof: ContractProof) => Promise<Outcome>;

export async function compareAccounts(
  audit: ChamberAudit,
  accounts: Accounts | undefined,
  judgeProof?: JudgeContractProof,
): Promise<void> {
  const { findings, accountReferences } = audit;
  if (accounts === undefined) {
    const why = 'the lines contain no accounts: use --accounts';
    return findings.notEvaluated({ needs: 'accounts', why }, 'registration');
  }
  const { copyProblem } = accounts;
  if (copyProblem !== undefined) findings.judge('registration', [], `the accounts file ${copyProblem}`);
  const unsigned = new Set<string>();
  const named: (readonly [AccountReference, AccountLog])[] = [];
  for (const reference of accountReferences) {
    const { did, accountEventId } = reference;
    const account = await accounts.of(did, accountEventId);
    if (account !== undefined) named.push([reference, account]);
    else if (accountEventId === undefined) judgeUnnamed(audit, reference);
    if (!isBacked(reference, account)) unsigned.add(did);
  }
  if (judgeProof) await confirmContractProofs(audit.context, named, judgeProof);
  for (const [reference, account] of named) judgeReference(audit, reference, account);
  const first = new Map(named.toReversed().map(([{ eventId }, account]) => [account, eventId]));
  for (const [account, eventId] of first) {
    for (const stub of account.stubs) await audit.stubs.takeOfAccount(stub, eventId, audit.pinnedKey);
  }
  const unsignedLines = [...new Set(named.map(([, account]) => account))].reduce(
    (sum, one) => sum + one.unsignedLines,
    0,
  );
  if (unsignedLines > 0) findings.note('registration', `no signature covers ${unsignedLines} of the account lines`);
  if (unsigned.size === 0) return;
  const dids = [...unsigned].slice(0, AGENTS_NAMED_MAX).join(', ') + (unsigned.size > AGENTS_NAMED_MAX ? ' …' : '');
  const agents = unsigned.size === 1 ? '1 agent' : `${unsigned.size} agents`;
  const why = `no signed line shows the wallet of ${agents}: ${dids}`;
  findings.notEvaluated({ limit: 'unsigned registration', why }, 'registration');
}

/** Whether a signed registration backs the named account line. */
function isBacked({ accountEventId }: AccountReference, account: AccountLog | undefined): boolean {
  return accountEventId === undefined || account?.entryAt(accountEventId)?.isSigned === true;
}

function judgeUnnamed({ findings }: ChamberAudit, reference: AccountReference): void {
  if (isNamingType(reference)) findings.notEvaluated(unnamed(reference), 'registration');
}

function unnamed({ eventId }: AccountReference) {
  return {
    limit: 'earlier release',
    why: `event ${eventId} names no account line: an earlier release wrote it`,
  } as const;
}

/** Runs independent checks, so an open question never hides a problem. */
function judgeReference(audit: ChamberAudit, reference: AccountReference, account: AccountLog): void {
  const { findings, context } = audit;
  const { eventId, lastEventId, accountEventId } = reference;
  const retired = retirementProblem(reference, account);
  if (retired !== undefined) findings.judge('registration', [lastEventId], `event ${lastEventId}: ${retired}`);
  // Events of these types named no account line in the first releases. AccountReferences.check reports omissions by later releases.
  if (accountEventId === undefined && !isNamingType(reference)) return;
  const accountProblem = mostSevere(
    account.doubt === undefined ? undefined : { doubt: account.doubt },
    clockProblem(context, reference.did, account),
    ...account.contractProofs.map((proof) => contractProblem(proof, reference.did, context.contractProofs)),
    originProblem(audit, reference, account),
  );
  const referenceProblem =
    accountEventId === undefined ? unnamedWalletProblem(reference, account) : namedLineProblem(reference, account);
  const problem = mostSevere(account.problem, referenceProblem, accountProblem);
  if (problem === undefined && !isBacked(reference, account)) return;
  const named = typeof problem === 'string' ? `event ${eventId}: ` : '';
  const eventIds = accountEventId === undefined ? [eventId] : [eventId, lastEventId];
  findings.assess('registration', eventIds, problem, named);
}

/** As for chambers, an account that is entirely in the future is accepted unless the caller stated the time. */
function clockProblem(context: AuditContext, did: string, { entries, lastEventId }: AccountLog): Problem {
  const [first, last] = [entries[0], entries.at(-1)];
  if (first === undefined || last === undefined || !isAhead(last.at, context)) return undefined;
  if (!context.clock.isStated && isAhead(first.at, context)) return undefined;
  return { doubt: `event ${lastEventId} of the account of ${did} is dated in the future: ${toTimestamp(last.at)}` };
}

async function confirmContractProofs(
  { contractProofs: judged }: AuditContext,
  named: readonly (readonly [AccountReference, AccountLog])[],
  judgeProof: JudgeContractProof,
): Promise<void> {
  const left = new Set(named.flatMap(([, account]) => account.contractProofs.filter((proof) => !judged.has(proof))));
  await forEachConcurrently(left, async (proof) => {
    judged.set(proof, await judgeProof(proof));
  });
}

function contractProblem(proof: ContractProof, did: string, judged: AuditContext['contractProofs']): Problem {
  const { eventId, wallet, chainId, blockNumber } = proof;
  const named = `event ${eventId} of the account of ${did}`;
  if (!judged.has(proof)) {
    const question = `whether it accepted the signature at block ${blockNumber} of chain ${chainId}`;
    const why = `the wallet ${wallet} of ${named} is a contract: only the chain (--rpc) shows ${question}`;
    return { needs: 'chain', why };
  }
  const outcome = judged.get(proof);
  if (typeof outcome === 'object') return { doubt: `${named}: ${outcome.doubt}` };
  return outcome && `${named}: ${outcome}`;
}

/** For an event that names no account line: checks that the account had bound the recorded wallet by then. */
function unnamedWalletProblem(reference: AccountReference, { entries, firstEventId }: AccountLog): Problem {
  const { at, recorded } = reference;
  if (firstEventId !== 1 || entries.length === 0) return unnamed(reference);
  const past = entries.filter((entry) => entry.at <= at);
  if (past.length === 0) return 'its agent was not registered yet';
  const wallet = walletIn(recorded);
  if (wallet === undefined || past.some(({ walletAddress }) => walletAddress === wallet)) return unnamed(reference);
  return `creatorWallet is ${wallet}, which its account had not bound by then`;
}

/** A retired key can't make moves, regardless of the account line they name. */
function retirementProblem(
  { did, lastAt, accountEventId = 0 }: AccountReference,
  account: AccountLog,
): string | undefined {
  const retirement = account.entries.at(-1);
  if (retirement === undefined || !retirement.isRetirement) return undefined;
  const eventId = account.firstEventId + account.entries.length - 1;
  const named = `event ${eventId} of the account of ${did}`;
  if (accountEventId >= eventId) return `it names ${named}, which retired the key`;
  const late = lastAt - retirement.at;
  return late > LAG_MILLIS ? `it is ${late / 1000} s later than ${named}, which retired the key` : undefined;
}

function namedLineProblem(reference: AccountReference, account: AccountLog): string | undefined {
  const { did, at, lastAt, accountEventId = 0, recorded } = reference;
  const named = `event ${accountEventId} of the account of ${did}`;
  const entry = account.entryAt(accountEventId);
  // Lines before the first provided one may exist.
  if (entry === undefined && accountEventId >= account.firstEventId) return `it names ${named}, which does not exist`;
  if (entry !== undefined && entry.at > at) return `it is earlier than ${named}, which it names`;
  const next = account.entryAt(accountEventId + 1);
  if (next !== undefined && !next.isRetirement && lastAt - next.at > LAG_MILLIS) {
    return `it names ${named}, although event ${accountEventId + 1} was already ${(lastAt - next.at) / 1000} s old`;
  }
  if (entry?.walletAddress === undefined) {
    // Earlier releases published all lines with proofs, so a claimed proof must be among the lines.
    return recorded.walletProven ? `walletProven is true, but no line up to ${named} proves its wallet` : undefined;
  }
  if (recorded.isStub && entry.label === null && !entry.isLabelWithheld)
    return `it is a stub of a join, but ${named} has no label that it could withhold`;
  const bound = { ...entry, creatorWallet: entry.walletAddress };
  const { isStub: _, ...stated } = recorded;
  for (const [member, value] of Object.entries(stated) as [keyof typeof stated, RecordedValue][]) {
    if (value === bound[member] || (member === 'label' && entry.isLabelWithheld)) continue;
    return `${member} is ${value}, but ${named} binds ${bound[member]}`;
  }
  return undefined;
}

type RecordedValue = RecordedAccount[keyof RecordedAccount];

/** A registration signed for another service binds no wallet. */
function originProblem(
  { context: { origins } }: ChamberAudit,
  { did }: AccountReference,
  account: AccountLog,
): Problem {
  const foreign = [...account.origins].find((origin) => !origins.take(origin));
  if (foreign !== undefined) return `the account of ${did} was signed for ${foreign}, which --origin does not name`;
  return origins.doubt === undefined ? undefined : { doubt: origins.doubt };
}
