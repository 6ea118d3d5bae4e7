// Says how an agent can satisfy the admission rules that it does not meet yet, in clauses for errors and for its todo list.
import {
  type AdmissionState,
  type Candidate,
  needsProvenWallet,
  seatOfWallet,
  unmetRules,
} from '../../projections/admission.ts';
import type { AdmissionRule, TokenRule } from '../vocabulary/values.ts';

/** Lists each rule and how to satisfy it. */
export function remedies(state: AdmissionState, did: string, unmet: readonly AdmissionRule[]): string {
  return unmet.map((rule) => `${rule}: ${remedyOf(state, did, rule)}`).join('; ');
}

function remedyOf(state: AdmissionState, did: string, rule: AdmissionRule): string {
  const { chamberId, creatorDid, admission } = state;
  switch (rule) {
    case 'dids':
      return `${did} is not on the list of chamber ${chamberId}: its creator ${creatorDid} may add it in LOBBY by POST /chambers/${chamberId}/admit`;
    case 'provenWallets':
      return `the wallet of ${did} is not proven: sign POST /register again with walletSignature and issuedAt, as /agent-guide shows`;
    case 'token':
      return admission?.token === undefined ? '' : tokenRemedy(state, admission.token);
  }
}

export function tokenRemedy(
  { tokenChain }: Pick<AdmissionState, 'tokenChain'>,
  { address, minBalance }: TokenRule,
): string {
  const { chainId, blockNumber } = tokenChain ?? {};
  const block = blockNumber === undefined ? '' : ` in block ${blockNumber}`;
  return `the proven wallet must hold at least ${minBalance} of ${address} on chain ${chainId}${block}`;
}

/** Returns why a non-member may not join in LOBBY, without querying the chain; null if the agent may join. */
export function admissionProblem(
  state: AdmissionState,
  candidate: Candidate & { readonly walletAddress: string },
): string | null {
  const unmet = unmetRules(state, candidate);
  if (unmet.length > 0) return remedies(state, candidate.did, unmet);
  const seat = needsProvenWallet(state.admission) ? seatOfWallet(state, candidate.walletAddress) : undefined;
  return seat === undefined ? null : `the wallet ${candidate.walletAddress} already has a seat: ${seat}`;
}
