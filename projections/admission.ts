// Who may join a chamber, by its rules and what is known without asking a chain. A rule that is not given does not restrict.
import type { Admission, AdmissionRule, BlockReference, TokenRule } from '../src/vocabulary/values.ts';

/** The longest list of a chamber, with the agents that the creator adds. */
export const LISTED_MAX = 1_024;

/** The part of a chamber's state that says who may join. */
export interface AdmissionState {
  readonly chamberId: number;
  readonly creatorDid: string;
  /** The rules with the agents that were added; null: every agent may join. */
  readonly admission: Admission | null;
  /** The token's chain and, where the balances of the creation count, their block; null without `admission.token`. */
  readonly tokenChain: ({ readonly chainId: number } & Partial<BlockReference>) | null;
  /** The members by turn order. */
  readonly members: readonly string[];
  /** The seats by turn order; the wallets are those of the joins. */
  readonly seats: readonly { readonly wallet: string | null }[];
}

/** The part of an agent that rules of admission read. */
export interface Candidate {
  readonly did: string;
  readonly walletProven: boolean | undefined;
}

/** A rule that the candidate does not meet, and what would satisfy it, in a sentence without its period. */
export interface UnmetRule {
  readonly rule: AdmissionRule;
  readonly remedy: string;
}

/** Whether a seat is that of a proven wallet, which has no other. */
export function needsProvenWallet(admission: Admission | null): boolean {
  return admission?.provenWallets === true || admission?.token !== undefined;
}

export function unmetRules(state: AdmissionState, { did, walletProven }: Candidate): readonly UnmetRule[] {
  const { chamberId, creatorDid, admission } = state;
  const unmet: UnmetRule[] = [];
  if (admission?.dids?.includes(did) === false) {
    const remedy = `${did} is not on the list of chamber ${chamberId}: its creator ${creatorDid} may add it in LOBBY by POST /chambers/${chamberId}/admit`;
    unmet.push({ rule: 'dids', remedy });
  }
  if (!needsProvenWallet(admission) || walletProven === true) return unmet;
  const remedy = `the wallet of ${did} is not proven: sign POST /register again with walletSignature and issuedAt, as /agent-guide shows`;
  unmet.push({ rule: 'provenWallets', remedy });
  if (admission?.token !== undefined) unmet.push({ rule: 'token', remedy: tokenRemedy(state, admission.token) });
  return unmet;
}

/** What the token's rule asks for. */
export function tokenRemedy(
  { tokenChain }: Pick<AdmissionState, 'tokenChain'>,
  { address, minBalance }: TokenRule,
): string {
  const { chainId, blockNumber } = tokenChain ?? {};
  const block = blockNumber === undefined ? '' : ` in block ${blockNumber}`;
  return `the proven wallet must hold at least ${minBalance} of ${address} on chain ${chainId}${block}`;
}

export function toSentence(unmet: readonly UnmetRule[]): string {
  return unmet.map(({ rule, remedy }) => `${rule}: ${remedy}`).join('; ');
}

/** Whether the creator may add one more agent to the list. */
export function mayAdmit({ creatorDid, admission }: AdmissionState, did: string): boolean {
  return did === creatorDid && admission?.dids !== undefined && admission.dids.length < LISTED_MAX;
}

/** The member that sits for the wallet, where each wallet has one seat. */
export function seatOfWallet(
  { members, seats }: Pick<AdmissionState, 'members' | 'seats'>,
  walletAddress: string,
): string | undefined {
  const wallet = walletAddress.toLowerCase();
  return members[seats.findIndex((taken) => taken.wallet?.toLowerCase() === wallet)];
}

/** The wallet for which the member sits; undefined where seats are not of wallets. */
export function seatWallet(
  { admission, members, seats }: Pick<AdmissionState, 'admission' | 'members' | 'seats'>,
  did: string,
): string | undefined {
  return needsProvenWallet(admission) ? (seats[members.indexOf(did)]?.wallet ?? undefined) : undefined;
}

/** What the rules say in LOBBY to an agent that is no member, as far as no chain is asked; null where they admit it. */
export function refusalOf(
  state: AdmissionState,
  candidate: Candidate & { readonly walletAddress: string },
): string | null {
  const unmet = unmetRules(state, candidate);
  if (unmet.length > 0) return toSentence(unmet);
  const seat = needsProvenWallet(state.admission) ? seatOfWallet(state, candidate.walletAddress) : undefined;
  return seat === undefined ? null : `the wallet ${candidate.walletAddress} already has a seat: ${seat}`;
}
