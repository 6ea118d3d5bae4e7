// The service's own events, which follow the moves: whether the rules allow them, and whether their transactions make the
// calls that the chamber's state requires. Only the chain shows whether they were executed.
import { graduates } from '../../projections/allocations.ts';
import type { ChamberState, Idea } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import type { RelayTransaction, ServiceEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Hex } from '../vocabulary/values.ts';
import { readTransaction } from './chain.ts';
import type { MoveTree } from './chamber-audit.ts';
import type { Findings } from './findings.ts';

/** What precedes a service event. */
interface Context {
  readonly state: ChamberState;
  readonly moves: MoveTree;
  /** The id under which the event is reported. */
  readonly eventId: number;
}

interface PossibleContext extends Omit<Context, 'state'> {
  /** null when no event created the chamber. */
  readonly state: ChamberState | null;
  /** An event whose effect on the state is unknown: then only the root can be judged. */
  readonly lostEventId: number | undefined;
}

/** The call that a transaction must make. */
interface Call {
  readonly functionName: string;
  readonly args: readonly unknown[];
}

export class ServiceEventChecks {
  readonly #findings: Findings;
  readonly #relayers = new Set<string>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  async check(event: ServiceEvent, { state, lostEventId, moves, eventId }: PossibleContext): Promise<void> {
    if (event.type === 'chamber.committed') this.#checkRoot(event.payload, moves, eventId);
    if (state !== null && lostEventId === undefined) {
      const context = { state, moves, eventId };
      this.#checkRules(event, context);
      return this.#checkTransactions(event, context);
    }
    const reason = `event ${lostEventId ?? 1} is lost, and service events depend on it`;
    this.#findings.notEvaluated('service-events', reason);
    this.#findings.notEvaluated('transactions', reason);
  }

  conclude(): void {
    const relayers = [...this.#relayers];
    if (relayers.length > 0) this.#findings.note('transactions', `signed by ${relayers.join(' and ')}`);
  }

  #checkRoot(
    payload: { readonly merkleRoot: Hex; readonly eventCount: number },
    moves: MoveTree,
    eventId: number,
  ): void {
    const root = rootOf(moves);
    this.#findings.judge('root', payload.merkleRoot === root && payload.eventCount === moves.size, {
      eventIds: [eventId],
      sentence: `event ${eventId} commits ${payload.merkleRoot} over ${payload.eventCount} events, but the root of the ${moves.size} moves is ${root}`,
    });
  }

  #checkRules(event: ServiceEvent, { state, eventId }: Context): void {
    try {
      decideServiceFact(state, withRightCount(event, state), Date.parse(event.ts));
      this.#findings.verified('service-events');
    } catch (error) {
      if (!(error instanceof ServiceFactRejected)) throw error;
      this.#findings.broken('service-events', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  async #checkTransactions(event: ServiceEvent, context: Context): Promise<void> {
    const { settlement } = context.state;
    switch (event.type) {
      case 'relay.commit_submitted':
        return this.#checkCall(event.payload, commitCall(context), context.eventId);
      case 'relay.deploy_submitted': {
        const { ideaId } = event.payload;
        const idea = graduates(context.state).find((graduate) => graduate.ideaId === ideaId);
        return this.#checkCall(event.payload, deployCall(context.state, idea), context.eventId);
      }
      case 'chamber.committed':
        return this.#checkRecorded(event.payload.txHash, settlement.commitSubmitted, context.eventId);
      case 'idea.deployed':
      case 'idea.deploy_failed': {
        const { submitted } = deploymentOf(settlement, event.payload.ideaId);
        return this.#checkRecorded(event.payload.txHash, submitted, context.eventId);
      }
      default:
        return unreachable(event);
    }
  }

  async #checkCall(recorded: RelayTransaction, due: Call | undefined, eventId: number): Promise<void> {
    const problem = await this.#problemOfCall(recorded, due);
    const sentence = `event ${eventId}: rawTransaction ${problem}`;
    this.#findings.judge('transactions', problem === undefined, { eventIds: [eventId], sentence });
  }

  async #problemOfCall(recorded: RelayTransaction, due: Call | undefined): Promise<string | undefined> {
    const signed = await readTransaction(recorded.rawTransaction).catch(() => undefined);
    if (signed === undefined) return 'is not a signed call of the contracts';
    if (signed.txHash !== recorded.txHash) return `has the hash ${signed.txHash}, not txHash`;
    if (signed.nonce !== recorded.nonce) return `has the nonce ${signed.nonce}`;
    if (signed.chainId !== recorded.chainId) return `is for chain ${signed.chainId}`;
    this.#relayers.add(signed.from);
    const { functionName, args } = signed.call;
    const isDue = due !== undefined && functionName === due.functionName && toText(args) === toText(due.args);
    return isDue ? undefined : `calls ${functionName}(${toText(args)}), which was not due`;
  }

  /** A transaction is logged before it is sent. One that is not may belong to a service whose log was lost since. */
  #checkRecorded(txHash: Hex | null, submitted: readonly RelayTransaction[], eventId: number): void {
    if (txHash === null) return;
    if (submitted.length === 0) {
      const reason = `event ${eventId} names a transaction that is not in the log: use --rpc to ask the chain`;
      this.#findings.notEvaluated('transactions', reason);
      return;
    }
    const isRecorded = submitted.some((transaction) => transaction.txHash === txHash);
    const sentence = `event ${eventId} names transaction ${txHash}, which is not in the log`;
    this.#findings.judge('transactions', isRecorded, { eventIds: [eventId], sentence });
  }
}

/** The check `root` judges the count, by the lines themselves. */
function withRightCount(event: ServiceEvent, { moveCount }: ChamberState): ServiceEvent {
  if (event.type !== 'chamber.committed') return event;
  return { ...event, payload: { ...event.payload, eventCount: moveCount } };
}

function commitCall({ state, moves }: Context): Call {
  return { functionName: 'commitChamber', args: [state.chamberId, rootOf(moves)] };
}

/** undefined for an idea that did not graduate: nothing is due for it. */
function deployCall({ chamberId }: ChamberState, idea: Idea | undefined): Call | undefined {
  if (idea === undefined) return undefined;
  const { ideaId, name, ticker, description, creatorWallet } = idea;
  const args = [{ chamberId, ideaId, name, ticker, description, creator: creatorWallet }];
  return { functionName: 'deployIdea', args };
}

function rootOf(moves: MoveTree): Hex {
  return toHex(moves.root() ?? new Uint8Array());
}

function toText(args: readonly unknown[] | undefined): string {
  return JSON.stringify(args, plain);
}

/** viem decodes ids as bigints, and addresses with a checksum. */
function plain(name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return name === 'creator' ? String(value).toLowerCase() : value;
}
