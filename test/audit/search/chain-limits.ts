// What neither the lines nor the chain that is asked show of a chamber whose root is committed, each with its reason.
import type { Line } from '../forge.ts';
import type { Difference } from './differences.ts';

/** The limit that covers the difference. */
export function limitOfChain(difference: Difference): string | undefined {
  return CHAIN_LIMITS.find(({ covers }) => covers(difference))?.why;
}

const isRelay = ({ type }: Line) => String(type).startsWith('relay.');
const isOutcome = ({ type }: Line) => String(type).startsWith('idea.') || type === 'chamber.committed';
const isOfService = (line: Line) => isRelay(line) || isOutcome(line);

const CHAIN_LIMITS: readonly { readonly why: string; readonly covers: (difference: Difference) => boolean }[] = [
  {
    why: 'transactions and outcomes that no line claims are on the chain alone',
    covers: ({ kind, line }) => kind === 'left out' && isOfService(line),
  },
  {
    why: 'anybody may sign transactions for the log, and need not send them',
    covers: (difference) =>
      (difference.kind === 'put in' && isRelay(difference.line)) ||
      (difference.kind === 'changed' &&
        isRelay(difference.line) &&
        /^payload\.(nonce|txHash|rawTransaction)$/.test(difference.path)),
  },
  {
    why: 'why a deployment failed, and by which of its transactions, its call alone shows',
    covers: (difference) =>
      difference.kind === 'changed' &&
      difference.line['type'] === 'idea.deploy_failed' &&
      /^payload\.(reason|txHash)$/.test(difference.path),
  },
  {
    why: 'a service dates its lines, and writes outcomes in the order that it likes',
    covers: (difference) =>
      (difference.kind === 'moved' || (difference.kind === 'changed' && difference.path === 'ts')) &&
      isOfService(difference.line),
  },
];
