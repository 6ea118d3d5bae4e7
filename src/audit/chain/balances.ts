// Checks the balance recorded by each join against the chain, at the recorded block.
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem';
import type { BalanceClaim, ChamberAudit } from '../chamber/chamber-audit.ts';
import type { Outcome } from '../report/findings.ts';
import { type AskedChain, forEachConcurrently, judgeAt } from './recorded-block.ts';

const ABI = parseAbi(['function balanceOf(address) view returns (uint256)']);
/** Must equal the service's gas limit for the call. */
const BALANCE_GAS = 1_000_000n;

export async function compareBalances(
  { findings, balanceClaims, decisions }: Pick<ChamberAudit, 'findings' | 'balanceClaims' | 'decisions'>,
  asked: AskedChain,
): Promise<void> {
  const tokenChain = decisions.state?.tokenChain ?? null;
  const doubt =
    tokenChain === null || balanceClaims.length > 0 ? undefined : await chainDoubt(tokenChain.chainId, asked);
  if (doubt !== undefined) findings.assess('balances', [1], { doubt }, 'event 1: ');
  await forEachConcurrently(balanceClaims, async (claim) => {
    const { eventId } = claim;
    findings.assess('balances', [eventId], await balanceProblem(claim, asked), `event ${eventId}: `);
  });
}

/** For a chamber without joins, checks that the RPC serves the chain named by the creation. */
async function chainDoubt(chainId: number, { chain }: AskedChain): Promise<string | undefined> {
  const served = await chain.chainId();
  return served === chainId ? undefined : `the RPC serves chain ${served}, but the token is on chain ${chainId}`;
}

async function balanceProblem(claim: BalanceClaim, asked: AskedChain): Promise<Outcome> {
  const { token, wallet, blockNumber, balance } = claim;
  if (wallet === undefined) return `it records a balance of ${balance} but no wallet`;
  const data = encodeFunctionData({ abi: ABI, args: [wallet.toLowerCase() as Address] });
  return judgeAt(claim, { to: token.toLowerCase() as Address, data, gas: BALANCE_GAS }, asked, (result) => {
    const held = result === 'reverted' ? undefined : balanceIn(result);
    if (held === balance) return undefined;
    const found = held === undefined ? 'no balance' : `a balance of ${held}`;
    return `it records a balance of ${balance}, but ${token} shows ${found} for ${wallet} at block ${blockNumber}`;
  });
}

const WORD_DIGITS = 64;

function balanceIn(result: Hex): string | undefined {
  return result.length === '0x'.length + WORD_DIGITS ? BigInt(result).toString() : undefined;
}
