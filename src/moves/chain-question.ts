// What a decision asks the chain, as data. Decisions are pure and wait for nothing: what makes them asks the question outside, and
// decides again with the answer, which the event then records.
import type { BlockReference, Hex } from '../vocabulary/values.ts';

/** Whether a contract is at the address, of a chamber that is created. */
export interface ContractQuestion {
  readonly kind: 'contract';
  readonly address: string;
}

/** How much of the token the wallet holds. */
export interface BalanceQuestion {
  readonly kind: 'balance';
  readonly chainId: number;
  readonly token: string;
  readonly wallet: string;
  /** null: the newest block. */
  readonly block: BlockReference | null;
}

/** Whether the wallet, a contract or one that can be deployed, accepts the signature of one of the hashes (EIP-1271, ERC-6492). */
export interface SignatureQuestion {
  readonly kind: 'signature';
  readonly wallet: string;
  readonly hashes: readonly Hex[];
  readonly signature: Hex;
}

export type ChainQuestion = ContractQuestion | BalanceQuestion | SignatureQuestion;

export interface ChainAnswers {
  /** The newest block of the chain, in which the contract is. */
  readonly contract: BlockReference & { readonly chainId: number };
  /** A decimal integer. */
  readonly balance: BlockReference & { readonly balance: string };
  /** null: none of them, or there is no such contract, or no chain. */
  readonly signature: (BlockReference & { readonly chainId: number; readonly hash: Hex }) | null;
}

export type ChainAnswer = ChainAnswers[ChainQuestion['kind']];

/** Answers within a decision; throws a ForumError where the chain has no answer that satisfies the rule. */
export type ReadChain = <Kind extends ChainQuestion['kind']>(
  question: Extract<ChainQuestion, { readonly kind: Kind }>,
) => ChainAnswers[Kind];

/**
 * Asks the chain. Rejects with a ForumError: FORUM_ERR_VALIDATION or FORUM_ERR_ADMISSION where the contract is at fault, FORUM_ERR_UNAVAILABLE
 * where the chain is.
 */
export interface ChainReader {
  answer(question: ChainQuestion): Promise<ChainAnswer>;
}
