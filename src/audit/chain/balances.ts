// Compares the balances that joins record with the chain, each in the block that its line names.
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem';
import type { BalanceClaim, ChamberAudit } from '../chamber/chamber-audit.ts';
import type { AuditedChain } from './chain-reader.ts';

const ABI = parseAbi(['function balanceOf(address) view returns (uint256)']);
const AT_ONCE_MAX = 8;

export async function compareBalances(
  { findings, balanceClaims }: Pick<ChamberAudit, 'findings' | 'balanceClaims'>,
  chain: AuditedChain,
): Promise<void> {
  const chainId = balanceClaims.length === 0 ? undefined : await chain.chainId();
  const left = [...balanceClaims];
  const judgeNext = async () => {
    for (let claim = left.shift(); claim !== undefined; claim = left.shift()) {
      const { eventId } = claim;
      const outcome = await judge(claim, chain, chainId);
      if ('doubt' in outcome) findings.undecided('balances', `event ${eventId}: ${outcome.doubt}`);
      else findings.judge('balances', [eventId], outcome.problem && `event ${eventId}: ${outcome.problem}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE_MAX }, judgeNext));
}

/** Why a claim is broken, if it is, or why the chain that is asked can't tell. */
type Outcome = { readonly problem: string | undefined } | { readonly doubt: string };

async function judge(claim: BalanceClaim, chain: AuditedChain, chainId: number | undefined): Promise<Outcome> {
  const { token, wallet, blockNumber, blockHash, balance } = claim;
  if (chainId !== claim.chainId)
    return { doubt: `the RPC serves chain ${chainId}, and the join is of ${claim.chainId}` };
  const hash = await chain.blockHash(blockNumber);
  if (hash !== blockHash)
    return { doubt: `block ${blockNumber} is ${hash ?? 'not known'} there, and not ${blockHash}` };
  const data = encodeFunctionData({ abi: ABI, args: [wallet.toLowerCase() as Address] });
  const outcome = await chain.read({ to: token.toLowerCase() as Address, data }, BigInt(blockNumber));
  if (outcome === 'unknown') return { doubt: `the RPC does not have the state of block ${blockNumber}` };
  const held = outcome === 'reverted' ? undefined : balanceIn(outcome);
  const found = held === undefined ? 'no balance' : `a balance of ${held}`;
  const problem = `it records a balance of ${balance}, and ${token} shows ${found} of ${wallet} in block ${blockNumber}`;
  return { problem: held === balance ? undefined : problem };
}

const WORD_DIGITS = 64;

function balanceIn(result: Hex): string | undefined {
  return result.length === '0x'.length + WORD_DIGITS ? BigInt(result).toString() : undefined;
}
