// Asks the chain whether a wallet that is a contract, or can be deployed as one, accepts what the account holds as its signature (EIP-1271,
// ERC-6492), in the block that the line names: the universal validator of ERC-6492 runs in a call that changes nothing.
import { isAcceptance, validationCall } from '../../crypto/validation-call.ts';
import type { Outcome } from '../report/findings.ts';
import type { AuditedChain } from './chain-reader.ts';
import { type ContractProof, readAt } from './recorded-block.ts';

/** What the service gives such a call. */
const VALIDATION_GAS = 10_000_000n;

export async function judgeContractProof(proof: ContractProof, chain: AuditedChain): Promise<Outcome> {
  const { wallet, hash, signature, blockNumber } = proof;
  const call = validationCall(wallet, hash, signature);
  const result = await readAt(proof, { ...call, gas: VALIDATION_GAS }, chain);
  if (typeof result === 'object') return result;
  if (result !== 'reverted' && isAcceptance(call, result)) return undefined;
  return `the contract ${wallet} does not accept the recorded signature in block ${blockNumber}`;
}
