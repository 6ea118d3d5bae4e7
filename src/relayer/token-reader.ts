// Reads token balances for admission rules, and checks signatures of contract wallets, deployed or not (EIP-1271, ERC-6492). Contracts
// may be hostile and the node slow, so gas, time and concurrency are limited.
import { type Address, type Hex, isErc6492Signature } from 'viem';
import { isAcceptance, validationCall } from '../crypto/validation-call.ts';
import type {
  BalanceQuestion,
  ChainAnswer,
  ChainAnswers,
  ChainQuestion,
  ChainReader,
  ContractQuestion,
  SignatureQuestion,
} from '../moves/chain-question.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import { ForumError, invalid, unavailable } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';
import { type Call, hasCode, orRevert, readCallAt, readChainId, readHead } from './chain-client.ts';
import { isRejection, openRpc, type Rpc, RpcError } from './rpc.ts';

/** Includes the time that a query waits for others. */
const ANSWER_MILLIS_MAX: Millis = 5_000;
const QUESTIONS_AT_ONCE = 32;
/** Ten times as much as honest tokens need. */
const BALANCE_GAS_MAX = 1_000_000n;
/** Deploying a wallet takes at most a few million. */
const VALIDATION_GAS_MAX = 10_000_000n;

const ZERO_ADDRESS: Address = `0x${'0'.repeat(40)}`;
/** The selector of balanceOf(address) in ERC-20 and ERC-721. */
const BALANCE_OF = '0x70a08231';
const WORD_DIGITS = 64;

interface TokenReaderOptions {
  readonly rpcUrl: string;
  /** Undefined while the service's chain is unknown. */
  readonly chainId: number | undefined;
  readonly answerMillisMax?: Millis;
}

export class TokenReader implements ChainReader {
  readonly #rpc: Rpc;
  readonly #chainId: number | undefined;
  readonly #answerMillisMax: Millis;
  readonly #questions = new ConcurrencyLimit({ max: QUESTIONS_AT_ONCE });

  constructor({ rpcUrl, chainId, answerMillisMax = ANSWER_MILLIS_MAX }: TokenReaderOptions) {
    this.#rpc = openRpc(rpcUrl, { timeoutMillis: answerMillisMax });
    this.#chainId = chainId;
    this.#answerMillisMax = answerMillisMax;
  }

  /** Rejects open queries with FORUM_ERR_UNAVAILABLE. */
  close(): void {
    this.#rpc.close();
  }

  async answer(question: ChainQuestion): Promise<ChainAnswer> {
    const late = Promise.withResolvers<never>();
    const expired = new AbortController();
    const problem = unavailable(`the chain did not respond within ${this.#answerMillisMax / 1000} s, retry`);
    const timer = setTimeout(() => {
      expired.abort(problem);
      late.reject(problem);
    }, this.#answerMillisMax);
    try {
      return await Promise.race([this.#questions.run(() => this.#answer(question, expired.signal)), late.promise]);
    } catch (error) {
      throw error instanceof RpcError ? unavailable(`${error.message}, retry`) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #answer(question: ChainQuestion, expired: AbortSignal): Promise<ChainAnswer> {
    // The query has timed out. After an outage of the RPC, a backlog of such queries must not delay new ones.
    expired.throwIfAborted();
    if (question.kind === 'contract') return this.#contract(question);
    return question.kind === 'balance' ? this.#balance(question) : this.#signature(question);
  }

  async #contract({ address }: ContractQuestion): Promise<ChainAnswers['contract']> {
    const [chainId, head, isContract] = await Promise.all([
      this.#requireChain(this.#chainId),
      readHead(this.#rpc),
      hasCode(this.#rpc, address as Address),
    ]);
    if (!isContract) throw invalid(`admission.token.address: no contract at ${address} on chain ${chainId}`);
    return { chainId, blockNumber: head.number, blockHash: head.hash };
  }

  async #balance({ chainId, token, wallet, block }: BalanceQuestion): Promise<ChainAnswers['balance']> {
    const known = this.#requireChain(chainId);
    if (block !== null) {
      const [balance] = await Promise.all([this.#balanceAt(block.blockHash, token, wallet), known]);
      return { ...block, balance };
    }
    const [{ number: blockNumber, hash: blockHash }] = await Promise.all([readHead(this.#rpc), known]);
    return { blockNumber, blockHash, balance: await this.#balanceAt(blockHash, token, wallet) };
  }

  async #signature({ wallet, hashes, signature }: SignatureQuestion): Promise<ChainAnswers['signature']> {
    const [chainId, head] = await Promise.all([this.#requireChain(this.#chainId), readHead(this.#rpc)]);
    const { number: blockNumber, hash: blockHash } = head;
    // The validator would apply weaker rules than ours to accounts without code.
    if (!isErc6492Signature(signature) && !(await hasCode(this.#rpc, wallet as Address, blockHash))) return null;
    for (const hash of hashes) {
      const call = { ...validationCall(wallet, hash, signature), gas: VALIDATION_GAS_MAX };
      const outcome = await this.#callAt(call, blockHash);
      if ('result' in outcome && isAcceptance(call, outcome.result)) return { chainId, blockNumber, blockHash, hash };
    }
    return null;
  }

  async #requireChain(expected: number | undefined): Promise<number> {
    const chainId = await readChainId(this.#rpc);
    if (expected === undefined || chainId === expected) return chainId;
    throw unavailable(`the RPC serves chain ${chainId}, not ${expected}, retry`);
  }

  async #balanceAt(blockHash: Hex, token: string, wallet: string): Promise<string> {
    const data: Hex = `${BALANCE_OF}${wallet.slice('0x'.length).toLowerCase().padStart(WORD_DIGITS, '0')}`;
    const call = { from: ZERO_ADDRESS, to: token as Address, data, gas: BALANCE_GAS_MAX };
    const outcome = await this.#callAt(call, blockHash);
    if ('error' in outcome) throw tokenError(token, `used more than ${BALANCE_GAS_MAX} gas`);
    // The reason of the revert is omitted, because it is text from an untrusted contract.
    if ('revertData' in outcome) throw tokenError(token, 'reverted');
    const digits = outcome.result.slice('0x'.length);
    if (digits.length !== WORD_DIGITS) throw tokenError(token, `returned ${digits.length / 2} bytes, not 32`);
    return BigInt(outcome.result).toString();
  }

  /** Resolves to an error if the call ran out of gas. */
  async #callAt(call: Call & { readonly gas: bigint }, blockHash: Hex) {
    return orRevert(readCallAt(this.#rpc, call, blockHash)).catch((error: unknown) => {
      if (isRejection(error) && GAS_USED_UP.test(error.message)) return { error };
      throw error;
    });
  }
}

/** An invalid instruction consumes all remaining gas. */
const GAS_USED_UP = /out ?of ?gas|gas required exceeds|intrinsic gas|InvalidFEOpcode|invalid opcode/i;

/** While the contract fails, no wallet can satisfy the rule. */
function tokenError(token: string, problem: string): ForumError {
  const detail = `token: balanceOf of ${token} fails: ${problem}`;
  return new ForumError('FORUM_ERR_ADMISSION', detail, { failedRules: ['token'] });
}
