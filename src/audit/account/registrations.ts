// Compares what a chamber's events say about its members' accounts with those accounts.

import type { AccountReference, ChamberAudit } from '../chamber/chamber-audit.ts';
import type { AccountEntry, AccountLog, Accounts } from './accounts.ts';

/** A decision may be made on an account that was changed a moment before it was written. */
const LAG_MILLIS = 5_000;
const AGENTS_NAMED_MAX = 3;

/**
 * What the events say of accounts, without those: once a release names account lines, every later one does; the lines of an
 * agent never go back; and each binds one wallet.
 */
export function checkReferences({ findings, accountReferences }: Pick<ChamberAudit, 'findings' | 'accountReferences'>) {
  let first: AccountReference | undefined;
  const newest = new Map<string, AccountReference>();
  const wallets = new Map<string, AccountReference>();
  for (const reference of accountReferences) {
    const { eventId, did, at, accountEventId = 0, creatorWallet } = reference;
    const before = newest.get(did);
    const { accountEventId: newestId = 0 } = before ?? {};
    const line = `${did} ${accountEventId}`;
    const other = creatorWallet === undefined ? undefined : wallets.get(line);
    if (accountEventId === 0) {
      const problem = `event ${eventId} names no account line, although event ${first?.eventId} does`;
      if (first !== undefined) findings.judge('registration', [eventId], problem);
      continue;
    }
    const named = `event ${eventId} names event ${accountEventId} of the account of ${did}`;
    if (before !== undefined && accountEventId < newestId && at - before.at > LAG_MILLIS) {
      const problem = `${named}, although event ${before.eventId} named event ${newestId} before`;
      findings.judge('registration', [before.eventId, eventId], problem);
    }
    if (other !== undefined && other.creatorWallet !== creatorWallet) {
      const problem = `${named} for ${creatorWallet}, and event ${other.eventId} for ${other.creatorWallet}`;
      findings.judge('registration', [other.eventId, eventId], problem);
    }
    first ??= reference;
    if (accountEventId > newestId) newest.set(did, reference);
    if (creatorWallet !== undefined && other === undefined) wallets.set(line, reference);
  }
}

export async function compareAccounts(audit: ChamberAudit, accounts: Accounts | undefined): Promise<void> {
  const { findings, accountReferences } = audit;
  if (accounts === undefined) {
    return findings.notEvaluated('the lines hold no accounts: use --accounts', 'registration');
  }
  const { copyProblem } = accounts;
  if (copyProblem !== undefined) findings.judge('registration', [], `of the file of accounts, ${copyProblem}`);
  /** Agents whose wallet no signed line shows. */
  const unsigned = new Set<string>();
  for (const reference of accountReferences) {
    const { eventId, did, accountEventId } = reference;
    const account = await accounts.of(did);
    if (accountEventId === undefined) {
      const foreign = account && foreignWallet(reference, account);
      if (foreign !== undefined) findings.judge('registration', [eventId], `event ${eventId}: ${foreign}`);
      else findings.notEvaluated(`event ${eventId} names no account line: an earlier release wrote it`, 'registration');
      continue;
    }
    const problem = account === undefined ? undefined : problemOf({ ...reference, accountEventId }, account);
    if (problem !== undefined) findings.judge('registration', [eventId], `event ${eventId}: ${problem}`);
    else if (account?.entries[accountEventId - account.firstEventId]?.isSigned !== true) unsigned.add(did);
    else if (account.doubt !== undefined) findings.undecided('registration', account.doubt);
    else judgeOrigins(audit, reference, account);
  }
  if (unsigned.size === 0) return;
  const named = [...unsigned].slice(0, AGENTS_NAMED_MAX).join(', ') + (unsigned.size > AGENTS_NAMED_MAX ? ' …' : '');
  findings.notEvaluated(`no signed line shows the wallet of ${unsigned.size} agents: ${named}`, 'registration');
}

/** A wallet that the account never had until then, or none, where all of it is published. */
function foreignWallet({ at, creatorWallet }: AccountReference, account: AccountLog): string | undefined {
  const { entries, firstEventId, problem } = account;
  if (problem !== undefined || firstEventId !== 1) return problem;
  const past = entries.filter((entry) => entry.at <= at);
  if (past.length === 0) return 'its agent was not registered yet';
  if (creatorWallet === undefined || past.some(({ walletAddress }) => walletAddress === creatorWallet))
    return undefined;
  return `creatorWallet is ${creatorWallet}, which its account did not bind before`;
}

type Named = AccountReference & { readonly accountEventId: number };

function problemOf({ did, at, accountEventId, creatorWallet }: Named, account: AccountLog): string | undefined {
  if (account.problem !== undefined) return account.problem;
  const { entries, firstEventId } = account;
  const named = `event ${accountEventId} of the account of ${did}`;
  const index = accountEventId - firstEventId;
  const entry: AccountEntry | undefined = entries[index];
  if (index < 0) return undefined;
  if (entry === undefined) return `it names ${named}, which does not exist`;
  if (entry.at > at) return `it is earlier than ${named}, which it names`;
  const next = entries[index + 1];
  if (next !== undefined && at - next.at > LAG_MILLIS) {
    return `it names ${named}, although event ${accountEventId + 1} is ${(at - next.at) / 1000} s older than it`;
  }
  if (creatorWallet === undefined || entry.walletAddress === undefined) return undefined;
  const isSame = creatorWallet === entry.walletAddress;
  return isSame ? undefined : `creatorWallet is ${creatorWallet}, but ${named} binds ${entry.walletAddress}`;
}

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
