// The limits of what the lines and the chain show about a committed chamber, each with its reason.
import type { Line } from '../forge.ts';
import type { Difference } from './differences.ts';

export function limitOfChain(difference: Difference): string | undefined {
  return CHAIN_LIMITS.find(({ covers }) => covers(difference))?.why;
}

const isRelay = ({ type }: Line) => String(type).startsWith('relay.');
const isOutcome = ({ type }: Line) => String(type).startsWith('idea.') || type === 'chamber.committed';
const isOfService = (line: Line) => isRelay(line) || isOutcome(line);

const tokenOf = (line: Line) => String((line['payload'] as Line)['tokenAddress']).toLowerCase();

const CHAIN_LIMITS: readonly { readonly why: string; readonly covers: (difference: Difference) => boolean }[] = [
  {
    why: 'only the chain shows transactions and outcomes that no line claims',
    covers: ({ kind, line }) => kind === 'omitted' && isOfService(line),
  },
  {
    why: 'anyone can sign transactions for the log without sending them',
    covers: (difference) =>
      (difference.kind === 'inserted' && isRelay(difference.line)) ||
      (difference.kind === 'changed' &&
        isRelay(difference.line) &&
        /^payload\.(nonce|txHash|rawTransaction)$/.test(difference.path)),
  },
  {
    why: 'the call alone does not show why a deployment failed, and by which transaction',
    covers: (difference) =>
      difference.kind === 'changed' &&
      difference.line['type'] === 'idea.deploy_failed' &&
      /^payload\.(reason|txHash)$/.test(difference.path),
  },
  {
    why: 'the letter case of a token’s address has no meaning, and no root covers outcomes',
    covers: (difference) =>
      difference.kind === 'changed' &&
      difference.path === 'payload.tokenAddress' &&
      tokenOf(difference.now) === tokenOf(difference.line),
  },
  {
    why: 'a service dates its lines, and chooses the order of outcomes',
    covers: (difference) =>
      (difference.kind === 'moved' || (difference.kind === 'changed' && difference.path === 'ts')) &&
      isOfService(difference.line),
  },
];
