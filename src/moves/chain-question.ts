// Decisions' queries of the chain, as data. Decisions are pure and synchronous, so the caller runs a query and repeats the decision with
// the result, which the event records.
import type { BlockReference, Hex } from '../vocabulary/values.ts';

/** Asks whether there is a contract at the address, for the creation of a chamber. */
export interface ContractQuestion {
  readonly kind: 'contract';
  readonly address: string;
}

/** Asks for a wallet's balance of a token. */
export interface BalanceQuestion {
  readonly kind: 'balance';
  readonly chainId: number;
  readonly token: string;
  readonly wallet: string;
  /** null for the newest block. */
  readonly block: BlockReference | null;
}

/** Asks whether a deployed or counterfactual contract wallet accepts the signature of one of the hashes (EIP-1271, ERC-6492). */
export interface SignatureQuestion {
  readonly kind: 'signature';
  readonly wallet: string;
  readonly hashes: readonly Hex[];
  readonly signature: Hex;
}

export type ChainQuestion = ContractQuestion | BalanceQuestion | SignatureQuestion;

export interface ChainAnswers {
  /** The chain's newest block, in which the contract exists. */
  readonly contract: BlockReference & { readonly chainId: number };
  /** A decimal integer. */
  readonly balance: BlockReference & { readonly balance: string };
  /** null if the wallet accepts none of the hashes or is not a contract, or if no chain is configured. */
  readonly signature: (BlockReference & { readonly chainId: number; readonly hash: Hex }) | null;
}

export type ChainAnswer = ChainAnswers[ChainQuestion['kind']];

/** Called within a decision. Returns the query's result; throws a ForumError if no result can satisfy the rule. */
export type ReadChain = <Kind extends ChainQuestion['kind']>(
  question: Extract<ChainQuestion, { readonly kind: Kind }>,
) => ChainAnswers[Kind];

/**
 * Queries the chain. Rejects with a ForumError: FORUM_ERR_VALIDATION or FORUM_ERR_ADMISSION if the contract is at fault,
 * FORUM_ERR_UNAVAILABLE if the chain is.
 */
export interface ChainReader {
  answer(question: ChainQuestion): Promise<ChainAnswer>;
}
