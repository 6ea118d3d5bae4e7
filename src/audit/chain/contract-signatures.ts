// Asks the chain whether a deployed or counterfactual contract wallet accepts the recorded signature (EIP-1271, ERC-6492) at the
// recorded block, by a read-only call of the universal validator of ERC-6492.
import { type Address, type Hex, isErc6492Signature } from 'viem';
import { isAcceptance, isContractCode, validationCall } from '../../crypto/validation-call.ts';
import type { Outcome } from '../report/findings.ts';
import { type AskedChain, type ContractProof, judgeAt } from './recorded-block.ts';

/** Must equal the service's gas limit for the call. */
const VALIDATION_GAS = 10_000_000n;

export async function judgeContractProof(proof: ContractProof, asked: AskedChain): Promise<Outcome> {
  const { wallet, hash, signature, blockNumber } = proof;
  const call = validationCall(wallet, hash, signature);
  return judgeAt(proof, { ...call, gas: VALIDATION_GAS }, asked, async (result) => {
    if (result === 'reverted' || !isAcceptance(call, result))
      return `the contract ${wallet} does not accept the recorded signature at block ${blockNumber}`;
    if (isErc6492Signature(signature)) return undefined;
    // For an account without code, the validator accepts key signatures under laxer rules, and a precompile may return anything.
    const code: Hex | 'unknown' = await asked.chain.code(wallet.toLowerCase() as Address, BigInt(blockNumber));
    if (code === 'unknown') return { doubt: `the RPC does not have the state of block ${blockNumber}` };
    return isContractCode(code) ? undefined : `there was no contract at ${wallet} as of block ${blockNumber}`;
  });
}
