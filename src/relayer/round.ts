// One round of the relayer: look at the log and the chain, send again what a reorganisation took, bring every open job a
// step further. It keeps no state that the log or the chain does not tell.
import { isClosed } from '../../projections/phase.ts';
import { readChainId, readHead, readNonce } from './chain.ts';
import { isLost, type Job, jobsOf, transactionsOf } from './jobs.ts';
import type { ClosedChamber } from './port.ts';
import { RpcError } from './rpc.ts';
import { FreeNonces, type Means, type Scene, type Step } from './scene.ts';
import { advance } from './settle.ts';
import { readSettled, type Settled } from './settled.ts';
import { signedBy } from './signer.ts';
import { isTrusted, type TrustMemory } from './trust.ts';

/** What one round leaves to the next: nothing that a restart would not find again. */
export interface Memory extends TrustMemory {
  settled: Settled | undefined;
  /** Chambers with transactions that no block had: looked at once more when it is over. */
  unmined: readonly number[];
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
const HALTED: RoundResult = { isHalted: true, isProgress: false, pending: 0 };

/** Chambers with open work; those that wait for help are not counted, so they hold up nobody. */
export function findWork({ forum, troubles }: Means): Promise<readonly number[]> {
  return forum.unsettledChambers(CHAMBERS_AT_ONCE + troubles.count);
}

export async function playRound(chamberIds: readonly number[], means: Means, memory: Memory): Promise<RoundResult> {
  const view = await openView(chamberIds, means, memory);
  if (view === undefined) return HALTED;
  const { chambers, scene } = view;
  let isProgress = false;
  let pending = 0;
  for (const chamber of chambers) {
    const { steps, last } = await settleChamber(chamber, scene);
    isProgress ||= steps.some((step) => step !== 'waiting');
    const jobs = await jobsOf(last, means.config, means.account.address);
    pending += jobs.filter((job) => job.outcome === null || isLost(job, scene.nonce)).length;
    await memory.settled?.watched.add(last.state);
  }
  if (pending === 0) means.troubles.clear('funds');
  return { isHalted: false, isProgress, pending };
}

async function readClosed(chamberIds: readonly number[], { forum }: Means): Promise<readonly ClosedChamber[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => forum.chamber(chamberId)));
  return chambers.filter((chamber) => chamber !== undefined && isClosed(chamber.state, forum.now())) as ClosedChamber[];
}

interface View {
  /** Settled ones with lost transactions first: they have the lower nonces. */
  readonly chambers: readonly ClosedChamber[];
  readonly scene: Scene;
}

/** The nonce is read before any receipt, so a nonce that is used up and a missing receipt are no race. */
async function openView(chamberIds: readonly number[], means: Means, memory: Memory): Promise<View | undefined> {
  const { rpc, account, forum } = means;
  const chainId = await readChainId(rpc);
  const [nonce, head] = await Promise.all([readNonce(rpc, account.address), readHead(rpc)]);
  const open = await readClosed(chamberIds, means);
  const settled = memory.settled ?? (await readSettled(forum, account.address, nonce));
  const logged = open.flatMap(({ state }) => transactionsOf(state.settlement));
  const loggedChainId = logged[0]?.chainId ?? settled.chainId;
  if (!(await isTrusted({ chainId, head, loggedChainId }, means, memory))) return undefined;
  memory.settled = settled;
  const unmined = settled.watched.chambersFrom(nonce);
  const others = new Set([...memory.unmined, ...unmined]);
  for (const chamberId of chamberIds) others.delete(chamberId);
  memory.unmined = unmined;
  const chambers = [...(await readClosed([...others], means)), ...open];
  const used = await signedBy(
    account.address,
    chambers.flatMap(({ state }) => transactionsOf(state.settlement)),
  );
  const nonces = new FreeNonces(
    nonce,
    used.map((transaction) => transaction.nonce),
  );
  return { chambers, scene: { ...means, chainId, head, nonce, nonces } };
}

/** Goes on with the chamber for as long as outcomes are recorded: the deployments follow the commitment at once. */
async function settleChamber(
  chamber: ClosedChamber,
  scene: Scene,
): Promise<{ readonly steps: readonly Step[]; readonly last: ClosedChamber }> {
  const steps: Step[] = [];
  for (let last = chamber; ; ) {
    const round: Step[] = [];
    const jobs = await jobsOf(last, scene.config, scene.account.address);
    for (const job of jobs) round.push(await advanceAlone(job, scene));
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
