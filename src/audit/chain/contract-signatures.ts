// Asks the chain whether a wallet that is a contract, or can be deployed as one, accepts what the account holds as its signature (EIP-1271,
// ERC-6492), in the block that the line names: the universal validator of ERC-6492 runs in a call that changes nothing.
import { type Address, type Hex, isErc6492Signature } from 'viem';
import { isAcceptance, isContractCode, validationCall } from '../../crypto/validation-call.ts';
import type { Outcome } from '../report/findings.ts';
import { type AskedChain, type ContractProof, judgeAt } from './recorded-block.ts';

/** What the service gives such a call. */
const VALIDATION_GAS = 10_000_000n;

export async function judgeContractProof(proof: ContractProof, asked: AskedChain): Promise<Outcome> {
  const { wallet, hash, signature, blockNumber } = proof;
  const call = validationCall(wallet, hash, signature);
  return judgeAt(proof, { ...call, gas: VALIDATION_GAS }, asked, async (result) => {
    if (result === 'reverted' || !isAcceptance(call, result))
      return `the contract ${wallet} does not accept the recorded signature in block ${blockNumber}`;
    if (isErc6492Signature(signature)) return undefined;
    // An account without code signs with its key, and the validator takes that by laxer rules; a precompile returns what it likes.
    const code: Hex | 'unknown' = await asked.chain.code(wallet.toLowerCase() as Address, BigInt(blockNumber));
    if (code === 'unknown') return { doubt: `the RPC does not have the state of block ${blockNumber}` };
    return isContractCode(code) ? undefined : `no contract is at ${wallet} in block ${blockNumber}`;
  });
}
