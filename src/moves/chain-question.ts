// Queries of the chain by decisions, as data. Decisions are pure and synchronous, so their caller runs the query and then repeats the
// decision with the result. The event records the result.
import type { BlockReference, Hex } from '../vocabulary/values.ts';

/** Whether there is a contract at the address, for the creation of a chamber. */
export interface ContractQuestion {
  readonly kind: 'contract';
  readonly address: string;
}

/** The balance of a token in a wallet. */
export interface BalanceQuestion {
  readonly kind: 'balance';
  readonly chainId: number;
  readonly token: string;
  readonly wallet: string;
  /** Null for the newest block. */
  readonly block: BlockReference | null;
}

/**
 * Whether the wallet (a contract, or an address where one can be deployed) accepts the signature of one of the hashes (EIP-1271,
 * ERC-6492).
 */
export interface SignatureQuestion {
  readonly kind: 'signature';
  readonly wallet: string;
  readonly hashes: readonly Hex[];
  readonly signature: Hex;
}

export type ChainQuestion = ContractQuestion | BalanceQuestion | SignatureQuestion;

export interface ChainAnswers {
  /** The newest block of the chain, in which the contract exists. */
  readonly contract: BlockReference & { readonly chainId: number };
  /** A decimal integer. */
  readonly balance: BlockReference & { readonly balance: string };
  /** Null if it accepts none of them, if there is no such contract, or if there is no chain. */
  readonly signature: (BlockReference & { readonly chainId: number; readonly hash: Hex }) | null;
}

export type ChainAnswer = ChainAnswers[ChainQuestion['kind']];

/** Returns the result within a decision; throws a ForumError if no result can satisfy the rule. */
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
