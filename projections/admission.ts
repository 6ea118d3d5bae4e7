// Decides who may join a chamber by its rules, without querying the chain. An omitted rule restricts nobody.
import type { Admission, AdmissionRule, BlockReference } from '../src/vocabulary/values.ts';

/** The maximum length of a chamber's list, including agents that the creator adds. */
export const LISTED_MAX = 1_024;

/** The part of a chamber's state that determines who may join. */
export interface AdmissionState {
  readonly chamberId: number;
  readonly creatorDid: string;
  /** The rules, including agents added later; null if every agent may join. */
  readonly admission: Admission | null;
  /** The token's chain and, if balances count as of the creation, their block; null without `admission.token`. */
  readonly tokenChain: ({ readonly chainId: number } & Partial<BlockReference>) | null;
  /** The members in turn order. */
  readonly members: readonly string[];
  /** The seats in turn order, with the wallet that each member had when it joined. */
  readonly seats: readonly { readonly wallet: string | null }[];
}

/** The data of an agent that the admission rules depend on. */
export interface Candidate {
  readonly did: string;
  readonly walletProven: boolean | undefined;
}

/** Whether members need a proven wallet. Such a wallet has at most one seat. */
export function needsProvenWallet(admission: Admission | null): boolean {
  return admission?.provenWallets === true || admission?.token !== undefined;
}

export function unmetRules({ admission }: AdmissionState, { did, walletProven }: Candidate): readonly AdmissionRule[] {
  const unmet: AdmissionRule[] = [];
  if (admission?.dids?.includes(did) === false) unmet.push('dids');
  if (!needsProvenWallet(admission) || walletProven === true) return unmet;
  return admission?.token === undefined ? [...unmet, 'provenWallets'] : [...unmet, 'provenWallets', 'token'];
}

/** Whether the creator may add another agent to the list. */
export function mayAdmit({ creatorDid, admission }: AdmissionState, did: string): boolean {
  return did === creatorDid && admission?.dids !== undefined && admission.dids.length < LISTED_MAX;
}

/** Returns the member that has the wallet's seat, if each wallet has at most one seat. */
export function seatOfWallet(
  { members, seats }: Pick<AdmissionState, 'members' | 'seats'>,
  walletAddress: string,
): string | undefined {
  const wallet = walletAddress.toLowerCase();
  return members[seats.findIndex((taken) => taken.wallet?.toLowerCase() === wallet)];
}

/** Returns the wallet of the member's seat; undefined if seats do not belong to wallets. */
export function seatWallet(
  { admission, members, seats }: Pick<AdmissionState, 'admission' | 'members' | 'seats'>,
  did: string,
): string | undefined {
  return needsProvenWallet(admission) ? (seats[members.indexOf(did)]?.wallet ?? undefined) : undefined;
}
