// One round of the relayer: look at the log and the chain, send again what a reorganisation took, bring every open job a
// step further. It keeps no state that the log or the chain does not tell.
import { isClosed } from '../../projections/phase.ts';
import type { RelayTransaction } from '../vocabulary/events.ts';
import { readChainId, readHead, readNonce } from './chain.ts';
import { findMismatches } from './identity.ts';
import { type Job, openJobs } from './jobs.ts';
import type { ClosedChamber } from './port.ts';
import { RpcError } from './rpc.ts';
import { type Means, nonceSource, type Scene, type Step } from './scene.ts';
import { advance, send } from './settle.ts';
import { readSettled, type SettledTransactions } from './settled.ts';

/** What one round leaves to the next: nothing that a restart would not find again. */
export interface Memory {
  settled: SettledTransactions | undefined;
  /** The chain that every answer must come from; undefined before the first contact. */
  chainId: number | undefined;
  isTrusted: boolean;
}

export interface RoundResult {
  /** The chain is not the one that it should be: nothing was done. */
  readonly isHalted: boolean;
  /** Something was sent or recorded, so more may follow at once. */
  readonly isProgress: boolean;
  /** Jobs and lost transactions that are still under way. */
  readonly pending: number;
}

const CHAMBERS_AT_ONCE = 64;
/** A node's refusal that lasts longer than this needs help. */
const REFUSAL_MILLIS = 30_000;
const LOST_REPEAT_MILLIS = 60_000;
const HALTED: RoundResult = { isHalted: true, isProgress: false, pending: 0 };

/** Chambers with open work; those that wait for help are not counted, so they hold up nobody. */
export function findWork({ forum, troubles }: Means): Promise<readonly number[]> {
  return forum.unsettledChambers(CHAMBERS_AT_ONCE + troubles.count);
}

export async function playRound(chamberIds: readonly number[], means: Means, memory: Memory): Promise<RoundResult> {
  const chambers = await readClosed(chamberIds, means);
  const scene = await openScene(chambers, means, memory);
  if (scene === undefined) return HALTED;
  const lost = await sendLost(memory, scene);
  let isProgress = false;
  let pending = lost;
  for (const chamber of chambers) {
    const { steps, last } = await settleChamber(chamber, scene);
    isProgress ||= steps.some((step) => step !== 'waiting');
    pending += openJobs(last, means.config).length;
    memory.settled?.add(last.state);
  }
  if (pending === 0) means.troubles.clear('funds');
  return { isHalted: false, isProgress, pending };
}

async function readClosed(chamberIds: readonly number[], { forum }: Means): Promise<readonly ClosedChamber[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => forum.chamber(chamberId)));
  return chambers.filter((chamber) => chamber !== undefined && isClosed(chamber.state, forum.now())) as ClosedChamber[];
}

/** The nonce is read before any receipt, so a nonce that is used up and a missing receipt are no race. */
async function openScene(chambers: readonly ClosedChamber[], means: Means, memory: Memory): Promise<Scene | undefined> {
  const { rpc, account, forum } = means;
  const chainId = await readChainId(rpc);
  const [nonce, head] = await Promise.all([readNonce(rpc, account.address), readHead(rpc)]);
  memory.settled ??= await readSettled(forum, nonce);
  for (const { state } of chambers) memory.settled.add(state);
  const logged = chambers.flatMap(submittedIn);
  if (!(await isTrusted(chainId, logged[0]?.chainId ?? memory.settled.chainId, means, memory))) return undefined;
  const used = [...logged, ...memory.settled.missing(nonce)].map((transaction) => transaction.nonce);
  return { ...means, chainId, head, nonce, takeNonce: nonceSource(nonce, used) };
}

async function isTrusted(
  chainId: number,
  loggedChainId: number | undefined,
  { rpc, config, troubles }: Means,
  memory: Memory,
): Promise<boolean> {
  memory.isTrusted &&= chainId === memory.chainId;
  if (memory.isTrusted) return true;
  const known = [memory.chainId, config.chainId, loggedChainId];
  const other = known.find((expected) => expected !== undefined && expected !== chainId);
  const [mismatch] = await findMismatches(rpc, chainId, { ...config, chainId: other ?? chainId });
  if (mismatch !== undefined) {
    troubles.raise('chain', `${mismatch.problem} (${mismatch.variable})`);
    return false;
  }
  troubles.clear('chain');
  memory.chainId = chainId;
  memory.isTrusted = true;
  return true;
}

function submittedIn({ state }: ClosedChamber): readonly RelayTransaction[] {
  const { commitSubmitted, deployments } = state.settlement;
  return [...commitSubmitted, ...[...deployments.values()].flatMap(({ submitted }) => submitted)];
}

/** The same bytes again: they take the same nonces, so the chain becomes what the log says it was. */
async function sendLost({ settled }: Memory, scene: Scene): Promise<number> {
  const missing = settled?.missing(scene.nonce) ?? [];
  for (const transaction of missing) {
    await send(transaction, scene);
    tellLost(transaction, scene);
  }
  return missing.length;
}

function tellLost({ txHash, nonce }: RelayTransaction, { waits, logger }: Scene): void {
  const subject = `lost ${txHash}`;
  if (waits.isOn(subject) && waits.elapsed(subject) < LOST_REPEAT_MILLIS) return;
  waits.end(subject);
  waits.elapsed(subject);
  logger.warn({ txHash, nonce }, 'the chain has lost a settled transaction; it is sent again');
}

/** Goes on with the chamber for as long as outcomes are recorded: the deployments follow the commitment at once. */
async function settleChamber(
  chamber: ClosedChamber,
  scene: Scene,
): Promise<{ readonly steps: readonly Step[]; readonly last: ClosedChamber }> {
  const steps: Step[] = [];
  for (let last = chamber; ; ) {
    const round: Step[] = [];
    for (const job of openJobs(last, scene.config)) round.push(await advanceAlone(job, scene));
    steps.push(...round);
    const next = round.includes('recorded') ? await scene.forum.chamber(chamber.state.chamberId) : undefined;
    if (next === undefined) return { steps, last };
    last = next;
  }
}

/** A node's refusal of one job holds up no other; a node that is away ends the round. */
async function advanceAlone(job: Job, scene: Scene): Promise<Step> {
  const subject = `${job.name} (RPC)`;
  try {
    const step = await advance(job, scene);
    scene.waits.end(subject);
    scene.troubles.clear(subject);
    return step;
  } catch (error) {
    if (!(error instanceof RpcError) || error.kind !== 'refused') throw error;
    scene.logger.warn({ job: job.name, reason: error.message }, 'the node refuses');
    if (scene.waits.elapsed(subject) >= REFUSAL_MILLIS) scene.troubles.raise(subject, error.message);
    return 'waiting';
  }
}
