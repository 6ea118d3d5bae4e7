// `chambers play`: a test agent that takes part in a chamber without proposing or debating.
import type { ChamberState } from '../../projections/chamber.ts';
import type { Agent } from '../client/agent.ts';
import { ClientError } from '../client/error.ts';
import { type Allocation, BPS_TOTAL } from '../vocabulary/values.ts';
import { visibleJson, visibleLine } from '../vocabulary/visible.ts';
import type { Input } from './command.ts';
import { agentOf, interruptible } from './environment.ts';
import { CommandError } from './output.ts';
import { toAllocation, toChamberId } from './values.ts';

export async function play(input: Input): Promise<void> {
  const chamberId = toChamberId(input.args[0]);
  const allocations = input.args.slice(1).map(toAllocation);
  const agent = await agentOf(input);
  const say = (text: string) =>
    console.log(input.isJson ? visibleJson({ chamberId, did: agent.did, text }) : visibleLine(text));
  const interrupted = new CommandError('failure', 'interrupted: start it again to continue');
  await interruptible(interrupted, (signal) => playChamber(agent, chamberId, { allocations, say, signal }));
}

interface PlayOptions {
  /** If empty, each idea gets the same share. */
  readonly allocations: readonly Allocation[];
  readonly say: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** Resolves once the agent has revealed, or the chamber no longer accepts the reveal. */
export async function playChamber(
  agent: Agent,
  chamberId: number,
  { allocations, say, ...options }: PlayOptions,
): Promise<void> {
  const attempt = async (done: string, move: Promise<unknown>) => say((await reasonTooLate(move)) ?? done);
  await joinUnlessMember(agent, chamberId, say);
  for await (const { phase } of agent.turns(chamberId, options)) {
    await attempt(`passed in ${phase}`, agent.pass(chamberId, options));
  }
  for await (const { phase, state } of agent.forum.watch(chamberId, options)) {
    if (phase === 'ALLOCATE_COMMIT') {
      const shares = allocations.length > 0 ? allocations : evenShares(state);
      const abstain = shares.every(({ bps }) => bps === 0);
      await attempt('committed', agent.commit(chamberId, shares, { ...options, abstain }));
    } else if (phase === 'ALLOCATE_REVEAL') {
      return await attempt('revealed', agent.reveal(chamberId, options));
    }
  }
}

async function joinUnlessMember(agent: Agent, chamberId: number, say: (text: string) => void): Promise<void> {
  const { phase, members } = await agent.forum.chamber(chamberId);
  if (phase === 'COMMITTED')
    throw new CommandError('conflict', `chamber ${chamberId} is over: its root is on the chain`);
  if (members.includes(agent.did)) return;
  if (phase !== 'LOBBY') {
    throw new CommandError('conflict', `chamber ${chamberId} is in ${phase}: this agent did not join it in LOBBY`);
  }
  const { turnOrder } = await agent.joinChamber(chamberId);
  say(`joined at position ${turnOrder} in the turn order`);
}

function evenShares({ ideas }: ChamberState): readonly Allocation[] {
  const alive = ideas.filter(({ isWithdrawn }) => !isWithdrawn);
  const bps = Math.floor(BPS_TOTAL / Math.max(1, alive.length));
  return alive.map(({ ideaId }) => ({ ideaId, bps }));
}

/** A phase or a turn may end while a move is in flight, and the agent may have made a move before a restart. */
const LATE_CODES: ReadonlySet<string> = new Set(['FORUM_ERR_PHASE', 'FORUM_ERR_TURN', 'FORUM_ERR_CONFLICT']);

async function reasonTooLate(move: Promise<unknown>): Promise<string | undefined> {
  try {
    await move;
    return undefined;
  } catch (error) {
    if (error instanceof ClientError && LATE_CODES.has(error.code)) return error.detail;
    throw error;
  }
}
