// Reads a chamber from its stream to the end, and compares what the lines say with what is on the chain.
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
  /** As they came. */
  readonly lines: readonly string[];
}

/** Follows the lines until the root is committed and every graduate's deployment has come to an end. */
export async function witness(
  forum: ForumClient,
  chamberId: number,
  tell: (event: ChamberEvent, state: ChamberState) => void,
  { signal }: { readonly signal: AbortSignal },
): Promise<Testimony> {
  let state: ChamberState | null = null;
  let tree = EMPTY_TREE;
  const lines: string[] = [];
  for await (const { event, leaf, line } of forum.lines(chamberId, { signal })) {
    lines.push(line);
    state = evolveChamber(state, event);
    if (isMove(event)) tree = appendLeaf(tree, fromHex(leaf)).tree;
    tell(event, state);
    if (isSettled(state)) return { state, lines, root: toHex(rootOf(tree)) };
  }
  throw new Error('the stream ended before the chamber was committed');
}

function isSettled(state: ChamberState): boolean {
  const isDecided = (idea: Idea) => deploymentOf(state.settlement, idea.ideaId).outcome !== null;
  return state.settlement.committed !== null && graduates(state).every(isDecided);
}

interface Token {
  readonly ticker: string;
  /** null where the deployment failed, or where the chain has no code at the address. */
  readonly address: string | null;
}

export interface OnChain {
  readonly root: Hex;
  readonly tokens: readonly Token[];
}

const REGISTRY = parseAbi(['function rootOf(uint256 chamberId) view returns (bytes32)']);

/** What the chain itself says of the chamber: asked there, not of the service. */
export async function readChain(forum: ForumClient, state: ChamberState): Promise<OnChain> {
  const { chain } = await forum.health();
  if (chain?.rpcUrl === undefined) throw new Error('the service does not tell its development chain in GET /health');
  const client = createPublicClient({ transport: http(chain.rpcUrl) });
  const args = [BigInt(state.chamberId)] as const;
  const root = await client.readContract({
    address: chain.registryAddress,
    abi: REGISTRY,
    functionName: 'rootOf',
    args,
  });
  const tokens = graduates(state).map(async ({ ideaId, ticker }): Promise<Token> => {
    const { outcome } = deploymentOf(state.settlement, ideaId);
    if (!isDeployed(outcome)) return { ticker, address: null };
    const code = await client.getCode({ address: outcome.tokenAddress as Hex });
    return { ticker, address: code === undefined ? null : outcome.tokenAddress };
  });
  return { root, tokens: await Promise.all(tokens) };
}
