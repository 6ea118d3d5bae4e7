// What a chamber's events say of their signers' accounts, compared without those.
import type { Millis } from '../../vocabulary/values.ts';
import type { Findings } from '../report/findings.ts';

/** An event that was decided on its signer's account. */
export interface AccountReference {
  readonly eventId: number;
  readonly did: string;
  readonly at: Millis;
  /** undefined in events of an earlier release. */
  readonly accountEventId: number | undefined;
  /** Of a proposal. */
  readonly creatorWallet: string | undefined;
}

/**
 * What the events say of accounts, without those: once a release names account lines, every later one does; the lines of an
 * agent never go back; and each binds one wallet.
 */
export function checkReferences(findings: Findings, references: readonly AccountReference[]): void {
  let first: AccountReference | undefined;
  const newest = new Map<string, AccountReference>();
  const wallets = new Map<string, AccountReference>();
  for (const reference of references) {
    const { eventId, did, accountEventId = 0, creatorWallet } = reference;
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
    if (before !== undefined && accountEventId < newestId) {
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
