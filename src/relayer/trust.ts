// Whether the chain that answers is the one that the relayer works on: the right id, and code at the contracts' addresses.
import type { Hex } from '../vocabulary/values.ts';
import type { Head } from './chain.ts';
import { findMismatches } from './identity.ts';
import type { Means } from './scene.ts';

export interface TrustMemory {
  /** The chain that every answer must come from; undefined before the first contact. */
  chainId: number | undefined;
  /** The newest block in which the contracts were seen. */
  trustedHead: Hex | undefined;
}

interface Seen {
  readonly chainId: number;
  readonly head: Head;
  /** The chain of the log's transactions; undefined where it has none. */
  readonly loggedChainId: number | undefined;
}

/** Asked anew with every block, because a chain may come back empty under the same id. */
export async function isTrusted(
  { chainId, head, loggedChainId }: Seen,
  { rpc, config, troubles }: Means,
  memory: TrustMemory,
): Promise<boolean> {
  if (chainId === memory.chainId && head.hash === memory.trustedHead) return true;
  memory.trustedHead = undefined;
  const known = [memory.chainId, config.chainId, loggedChainId];
  const other = known.find((expected) => expected !== undefined && expected !== chainId);
  const [mismatch] = await findMismatches(rpc, chainId, { ...config, chainId: other ?? chainId });
  if (mismatch !== undefined) {
    troubles.raise('chain', `${mismatch.problem} (${mismatch.variable})`);
    return false;
  }
  troubles.clear('chain');
  memory.chainId = chainId;
  memory.trustedHead = head.hash;
  return true;
}
