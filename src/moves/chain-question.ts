// What a decision asks the chain, as data. Decisions are pure and wait for nothing: what makes them asks the question outside, and
// decides again with the answer, which the event then records.
import type { BlockReference } from '../vocabulary/values.ts';

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

export type ChainQuestion = ContractQuestion | BalanceQuestion;

export interface ChainAnswers {
  /** The newest block of the chain, in which the contract is. */
  readonly contract: BlockReference & { readonly chainId: number };
  /** A decimal integer. */
  readonly balance: BlockReference & { readonly balance: string };
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
