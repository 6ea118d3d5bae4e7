// The service's own events, which stand after the moves: their order, whom they may be about, and what they claim of the
// chamber. Whether the chain agrees, only the chain can say.
import { graduates } from '../../projections/allocations.ts';
import type { ChamberState, Idea } from '../../projections/chamber.ts';
import { isClosed } from '../../projections/phase.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import type { RelayTransaction, ServiceEvent } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/hex.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Hex } from '../vocabulary/values.ts';
import { readTransaction } from './contracts.ts';
import type { Ledger } from './ledger.ts';
import type { MovesRoot } from './moves-root.ts';

type Committed = Extract<ServiceEvent, { type: 'chamber.committed' }>;
type OfIdea = Extract<ServiceEvent, { type: 'relay.deploy_submitted' | 'idea.deployed' | 'idea.deploy_failed' }>;

/** What stands before an event of the service. */
interface Before {
  readonly state: ChamberState;
  readonly moves: MovesRoot;
  readonly eventId: number;
}

interface Standing extends Omit<Before, 'state'> {
  /** null when no event created the chamber. */
  readonly state: ChamberState | null;
  /** An event whose effect on the state is not known: then only the root can be judged. */
  readonly lossEventId: number | undefined;
}

export class AnnexChecks {
  readonly #ledger: Ledger;
  readonly #relayers = new Set<string>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  async check(event: ServiceEvent, { state, lossEventId, moves, eventId }: Standing): Promise<void> {
    if (state !== null && lossEventId === undefined) return this.#checkAll(event, { state, moves, eventId });
    const reason = `event ${lossEventId ?? 1} is lost, and service events depend on it`;
    for (const name of ['annex', 'transactions'] as const) this.#ledger.notEvaluated(name, reason);
    if (event.type === 'chamber.committed') this.#checkRoot(event, { moves, eventId });
  }

  async #checkAll(event: ServiceEvent, before: Before): Promise<void> {
    this.#checkOrder(event, before);
    switch (event.type) {
      case 'relay.commit_submitted':
        return this.#checkTransaction(event.payload, before, undefined);
      case 'relay.deploy_submitted':
        return this.#checkTransaction(event.payload, before, ideaOf(event, before.state));
      case 'chamber.committed':
        this.#checkRoot(event, before);
        return this.#checkKnown(event.payload.txHash, before.state.settlement.commitSubmitted, before.eventId);
      case 'idea.deployed':
      case 'idea.deploy_failed': {
        const { submitted } = deploymentOf(before.state.settlement, event.payload.ideaId);
        return this.#checkKnown(event.payload.txHash, submitted, before.eventId);
      }
      default:
        return unreachable(event);
    }
  }

  conclude(): void {
    const relayers = [...this.#relayers];
    if (relayers.length > 0) this.#ledger.note('transactions', `signed by ${relayers.join(' and ')}`);
  }

  #checkOrder(event: ServiceEvent, { state, eventId }: Before): void {
    const problem = problemOfOrder(event, state);
    const sentence = `event ${eventId} (${event.type}) ${problem}`;
    this.#ledger.judge('annex', problem === undefined, { eventIds: [eventId], sentence });
  }

  #checkRoot({ payload }: Committed, { moves, eventId }: Omit<Before, 'state'>): void {
    const root = toHex(moves.root() ?? new Uint8Array());
    const isSame = payload.merkleRoot === root && payload.eventCount === moves.size;
    this.#ledger.judge('root', isSame, {
      eventIds: [eventId],
      sentence: `event ${eventId} commits ${payload.merkleRoot} over ${payload.eventCount} events, the ${moves.size} moves have ${root}`,
    });
  }

  /** A transaction is in the log before it is sent. One that is not may be of a service whose log was lost since. */
  #checkKnown(txHash: Hex | null, submitted: readonly RelayTransaction[], eventId: number): void {
    if (txHash === null) return;
    if (submitted.length === 0) {
      const reason = `event ${eventId} names a transaction that is not in the log: ask the chain with --rpc`;
      this.#ledger.notEvaluated('transactions', reason);
      return;
    }
    const isKnown = submitted.some((transaction) => transaction.txHash === txHash);
    const sentence = `event ${eventId} names transaction ${txHash}, which the log does not hold`;
    this.#ledger.judge('transactions', isKnown, { eventIds: [eventId], sentence });
  }

  /** Without an idea it must be the commitment. */
  async #checkTransaction(recorded: RelayTransaction, before: Before, idea: Idea | undefined): Promise<void> {
    const problem = await this.#problemOfTransaction(recorded, before, idea);
    const sentence = `event ${before.eventId}: ${problem}`;
    this.#ledger.judge('transactions', problem === undefined, { eventIds: [before.eventId], sentence });
  }

  async #problemOfTransaction(recorded: RelayTransaction, before: Before, idea?: Idea): Promise<string | undefined> {
    const signed = await readTransaction(recorded).catch(() => undefined);
    if (signed === undefined) return 'rawTransaction is no signed call of the contracts';
    if (signed.txHash !== recorded.txHash) return `rawTransaction hashes to ${signed.txHash}, not to txHash`;
    if (signed.nonce !== recorded.nonce) return `rawTransaction has the nonce ${signed.nonce}`;
    if (signed.chainId !== recorded.chainId) return `rawTransaction is for chain ${signed.chainId}`;
    this.#relayers.add(signed.from);
    const { functionName, args } = signed.call;
    const due = idea === undefined ? commitArgs(before) : deployArgs(before, idea);
    const name = idea === undefined ? 'commitChamber' : 'deployIdea';
    const isDue = functionName === name && JSON.stringify(args, plain) === JSON.stringify(due, plain);
    return isDue
      ? undefined
      : `rawTransaction calls ${functionName}(${JSON.stringify(args, plain)}), which was not due`;
  }
}

function problemOfOrder(event: ServiceEvent, state: ChamberState): string | undefined {
  const { committed, commitSubmitted } = state.settlement;
  switch (event.type) {
    case 'relay.commit_submitted':
    case 'chamber.committed':
      if (committed !== null && !isSentAgain(event, commitSubmitted)) return 'comes after the commitment';
      return isClosed(state, Date.parse(event.ts)) ? undefined : 'comes before the reveal deadline';
    case 'relay.deploy_submitted':
    case 'idea.deployed':
    case 'idea.deploy_failed': {
      const { ideaId } = event.payload;
      if (committed === null) return 'comes before the commitment';
      if (ideaOf(event, state) === undefined) return `is about ${JSON.stringify(ideaId)}, which did not graduate`;
      const { outcome, submitted } = deploymentOf(state.settlement, ideaId);
      if (outcome === null || isSentAgain(event, submitted)) return undefined;
      return `comes after the outcome for ${ideaId}`;
    }
    default:
      return unreachable(event);
  }
}

/** A reorganisation may take off the chain what was sent: then it is signed anew, with its outcome in the log already. */
function isSentAgain({ type }: ServiceEvent, submitted: readonly RelayTransaction[]): boolean {
  const isSubmission = type === 'relay.commit_submitted' || type === 'relay.deploy_submitted';
  return isSubmission && submitted.length > 0;
}

function ideaOf({ payload }: OfIdea, state: ChamberState): Idea | undefined {
  return graduates(state).find((idea) => idea.ideaId === payload.ideaId);
}

function commitArgs({ state, moves }: Before): readonly unknown[] {
  return [state.chamberId, toHex(moves.root() ?? new Uint8Array())];
}

function deployArgs({ state }: Before, { ideaId, name, ticker, description, creatorWallet }: Idea): readonly unknown[] {
  return [{ chamberId: state.chamberId, ideaId, name, ticker, description, creator: creatorWallet.toLowerCase() }];
}

/** For JSON: chain ids and addresses come as bigints and with a checksum. */
function plain(name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  return name === 'creator' ? String(value).toLowerCase() : value;
}
