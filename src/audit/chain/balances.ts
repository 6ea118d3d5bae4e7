// Compares the balances that joins record with the chain, each in the block that its line names.
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem';
import { forEachAtOnce } from '../at-once.ts';
import type { BalanceClaim, ChamberAudit } from '../chamber/chamber-audit.ts';
import type { AuditedChain } from './chain-reader.ts';
import { blockDoubt, noState, type Outcome } from './recorded-block.ts';

const ABI = parseAbi(['function balanceOf(address) view returns (uint256)']);
/** What the service gives such a call. */
const BALANCE_GAS = 1_000_000n;

export async function compareBalances(
  { findings, balanceClaims }: Pick<ChamberAudit, 'findings' | 'balanceClaims'>,
  chain: AuditedChain,
): Promise<void> {
  await forEachAtOnce(balanceClaims, async (claim) => {
    const { eventId } = claim;
    const outcome = await judge(claim, chain);
    if ('doubt' in outcome) findings.undecided('balances', `event ${eventId}: ${outcome.doubt}`);
    else findings.judge('balances', [eventId], outcome.problem && `event ${eventId}: ${outcome.problem}`);
  });
}

async function judge(claim: BalanceClaim, chain: AuditedChain): Promise<Outcome> {
  const { token, wallet, blockNumber, balance } = claim;
  const doubt = await blockDoubt(chain, claim);
  if (doubt !== undefined) return { doubt };
  const data = encodeFunctionData({ abi: ABI, args: [wallet.toLowerCase() as Address] });
  const call = { to: token.toLowerCase() as Address, data, gas: BALANCE_GAS };
  const outcome = await chain.read(call, BigInt(blockNumber));
  if (outcome === 'unknown') return { doubt: noState(claim) };
  const held = outcome === 'reverted' ? undefined : balanceIn(outcome);
  const found = held === undefined ? 'no balance' : `a balance of ${held}`;
  const problem = `it records a balance of ${balance}, and ${token} shows ${found} of ${wallet} in block ${blockNumber}`;
  return { problem: held === balance ? undefined : problem };
}

const WORD_DIGITS = 64;

function balanceIn(result: Hex): string | undefined {
  return result.length === '0x'.length + WORD_DIGITS ? BigInt(result).toString() : undefined;
}
