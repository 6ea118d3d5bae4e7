// Who may join a chamber, by its rules and what is known without asking a chain. A rule that is not given does not restrict.
import type { Admission, AdmissionRule, BlockReference } from '../src/vocabulary/values.ts';

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

/** Whether a seat is that of a proven wallet, which has no other. */
export function needsProvenWallet(admission: Admission | null): boolean {
  return admission?.provenWallets === true || admission?.token !== undefined;
}

/** The rules that the candidate does not meet. */
export function unmetRules({ admission }: AdmissionState, { did, walletProven }: Candidate): readonly AdmissionRule[] {
  const unmet: AdmissionRule[] = [];
  if (admission?.dids?.includes(did) === false) unmet.push('dids');
  if (!needsProvenWallet(admission) || walletProven === true) return unmet;
  return admission?.token === undefined ? [...unmet, 'provenWallets'] : [...unmet, 'provenWallets', 'token'];
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
