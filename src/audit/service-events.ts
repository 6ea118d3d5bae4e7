// The service's own events, which follow the moves: whether the rules allow them, and whether their transactions make the
// calls that the chamber's state requires. Only the chain shows whether they were executed.
import { graduates } from '../../projections/allocations.ts';
import type { ChamberState, Idea } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import type { RelayTransaction, ServiceEvent, ServicePayloads } from '../vocabulary/events.ts';
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
  /** An event whose effect on the state is unknown. */
  readonly lostEventId: number | undefined;
}

export class ServiceEventChecks {
  readonly #findings: Findings;
  readonly #readTransaction: typeof readTransaction;
  readonly #relayers = new Set<string>();

  constructor(findings: Findings, read = readTransaction) {
    this.#findings = findings;
    this.#readTransaction = read;
  }

  /** Without a reliable state only the root can be judged. */
  async check(event: ServiceEvent, { state, lostEventId, moves, eventId }: PossibleContext): Promise<void> {
    if (event.type === 'chamber.committed') this.#checkRoot(event.payload, moves, eventId);
    if (state !== null && lostEventId === undefined) {
      this.#checkRules(event, state, eventId);
      return this.#checkTransactions(event, { state, moves, eventId });
    }
    const reason = `event ${lostEventId ?? 1} is lost, and service events depend on it`;
    this.#findings.notEvaluated('service-events', reason);
    this.#findings.notEvaluated('transactions', reason);
  }

  conclude(): void {
    const relayers = [...this.#relayers];
    if (relayers.length > 0) this.#findings.note('transactions', `signed by ${relayers.join(' and ')}`);
  }

  #checkRoot(committed: ServicePayloads['chamber.committed'], moves: MoveTree, eventId: number): void {
    const { merkleRoot, eventCount } = committed;
    const root = rootOf(moves);
    this.#findings.judge('root', merkleRoot === root && eventCount === moves.size, {
      eventIds: [eventId],
      sentence: `event ${eventId} commits ${merkleRoot} over ${eventCount} events, but the root of the ${moves.size} moves is ${root}`,
    });
  }

  #checkRules(event: ServiceEvent, state: ChamberState, eventId: number): void {
    try {
      decideServiceFact(state, withRightCount(event, state), Date.parse(event.ts));
      this.#findings.verified('service-events');
    } catch (error) {
      if (!(error instanceof ServiceFactRejected)) throw error;
      this.#findings.broken('service-events', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  async #checkTransactions(event: ServiceEvent, { state, moves, eventId }: Context): Promise<void> {
    const { settlement, chamberId } = state;
    switch (event.type) {
      case 'relay.commit_submitted':
        return this.#checkCall(event.payload, toText('commitChamber', [chamberId, rootOf(moves)]), eventId);
      case 'relay.deploy_submitted': {
        const idea = graduates(state).find(({ ideaId }) => ideaId === event.payload.ideaId);
        return this.#checkCall(event.payload, idea && deployCall(chamberId, idea), eventId);
      }
      case 'chamber.committed':
        return this.#checkRecorded(event.payload.txHash, settlement.commitSubmitted, eventId);
      case 'idea.deployed':
      case 'idea.deploy_failed': {
        const { txHash, ideaId } = event.payload;
        return this.#checkRecorded(txHash, deploymentOf(settlement, ideaId).submitted, eventId);
      }
      default:
        return unreachable(event);
    }
  }

  /** `due` is the call as toText has it; undefined when none is due. */
  async #checkCall(recorded: RelayTransaction, due: string | undefined, eventId: number): Promise<void> {
    const problem = await this.#problemOfCall(recorded, due);
    const sentence = `event ${eventId}: rawTransaction ${problem}`;
    this.#findings.judge('transactions', problem === undefined, { eventIds: [eventId], sentence });
  }

  async #problemOfCall(recorded: RelayTransaction, due: string | undefined): Promise<string | undefined> {
    const signed = await this.#readTransaction(recorded.rawTransaction).catch(() => undefined);
    if (signed === undefined) return 'is not a signed call of the contracts';
    if (signed.txHash !== recorded.txHash) return `has the hash ${signed.txHash}, not txHash`;
    if (signed.nonce !== recorded.nonce) return `has the nonce ${signed.nonce}`;
    if (signed.chainId !== recorded.chainId) return `is for chain ${signed.chainId}`;
    this.#relayers.add(signed.from);
    const call = toText(signed.call.functionName, signed.call.args);
    return call === due ? undefined : `calls ${call}, which was not due`;
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

function rootOf(moves: MoveTree): Hex {
  return toHex(moves.root() ?? new Uint8Array());
}

/** The members in the order of the contract's interface. */
function deployCall(chamberId: number, { ideaId, name, ticker, description, creatorWallet }: Idea): string {
  return toText('deployIdea', [{ chamberId, ideaId, name, ticker, description, creator: creatorWallet }]);
}

/** viem decodes ids as bigints, and addresses with a checksum. */
function toText(functionName: string, args: readonly unknown[] | undefined): string {
  const text = JSON.stringify(args, (name, value: unknown) => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    return name === 'creator' ? String(value).toLowerCase() : value;
  });
  return `${functionName}(${text})`;
}
