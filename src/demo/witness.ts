// Follows a chamber's stream to its end, and reads from the chain what the lines must agree with.
import { createPublicClient, http, parseAbi } from 'viem';
import { graduates } from '../../projections/allocations.ts';
import { type ChamberState, evolveChamber, type Idea } from '../../projections/chamber.ts';
import { deploymentOf, isDeployed } from '../../projections/settlement.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { appendLeaf, EMPTY_TREE, rootOf } from '../crypto/merkle.ts';
import { type ChamberEvent, isMove } from '../vocabulary/events.ts';
import { fromHex, toHex } from '../vocabulary/hex.ts';
import type { Hex } from '../vocabulary/values.ts';

export interface Testimony {
  readonly state: ChamberState;
  /** Recomputed from the streamed lines alone. */
  readonly root: Hex;
  /** As received. */
  readonly lines: readonly string[];
}

/** Follows the lines until the root is committed and every graduate's deployment has an outcome. */
export async function witness(
  {
    forum,
    chamberId,
    signal,
  }: { readonly forum: ForumClient; readonly chamberId: number; readonly signal: AbortSignal },
  onEvent: (event: ChamberEvent, state: ChamberState) => void,
): Promise<Testimony> {
  let state: ChamberState | null = null;
  let tree = EMPTY_TREE;
  const lines: string[] = [];
  for await (const { event, leaf, line } of forum.lines(chamberId, { signal })) {
    lines.push(line);
    state = evolveChamber(state, event);
    if (isMove(event)) tree = appendLeaf(tree, fromHex(leaf)).tree;
    onEvent(event, state);
    const { settlement } = state;
    const isDecided = ({ ideaId }: Idea) => deploymentOf(settlement, ideaId).outcome !== null;
    if (settlement.committed === null || !graduates(state).every(isDecided)) continue;
    return { state, lines, root: toHex(rootOf(tree)) };
  }
  throw new Error('the stream ended before the chamber was committed');
}

export interface OnChain {
  readonly root: Hex;
  /** `address` is null if the deployment failed, or if the chain has no code there. */
  readonly tokens: readonly { readonly ticker: string; readonly address: string | null }[];
}

const REGISTRY = parseAbi(['function rootOf(uint256 chamberId) view returns (bytes32)']);

/** The chamber's root and tokens, read from the chain itself and not from the service. */
export async function readChain(forum: ForumClient, state: ChamberState): Promise<OnChain> {
  const { chain } = await forum.health();
  if (chain?.rpcUrl === undefined) throw new Error('GET /health does not name a development chain');
  const client = createPublicClient({ transport: http(chain.rpcUrl) });
  const root = await client.readContract({
    address: chain.registryAddress,
    abi: REGISTRY,
    functionName: 'rootOf',
    args: [BigInt(state.chamberId)],
  });
  const tokens = graduates(state).map(async ({ ideaId, ticker }) => {
    const { outcome } = deploymentOf(state.settlement, ideaId);
    if (!isDeployed(outcome)) return { ticker, address: null };
    const code = await client.getCode({ address: outcome.tokenAddress as Hex });
    return { ticker, address: code === undefined ? null : outcome.tokenAddress };
  });
  return { root, tokens: await Promise.all(tokens) };
}
