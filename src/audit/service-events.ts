// The service's own events, which follow the moves: whether the rules allow them, and whether their transactions make the
// calls that the chamber's state requires. Only the chain shows whether they were executed.
import { graduates } from '../../projections/allocations.ts';
import type { ChamberState } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import { decideServiceFact, ServiceFactRejected } from '../moves/service-facts.ts';
import type { ServiceEvent } from '../vocabulary/events.ts';
import type { RelayTransaction, ServicePayloads } from '../vocabulary/service-payloads.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Hex } from '../vocabulary/values.ts';
import { commitCall, deployCalls } from './calls.ts';
import { type AuditContext, type Candidates, lowerCase } from './context.ts';
import type { readTransaction } from './contracts.ts';
import type { Decisions } from './decisions.ts';
import type { Findings } from './findings.ts';
import type { MoveTree } from './move-tree.ts';

export interface ServiceEventOptions {
  readonly context: AuditContext;
  /** Reads as readTransaction does, which is the default. */
  readonly readTransaction?: typeof readTransaction | undefined;
  readonly moves: MoveTree;
}

export class ServiceEventChecks {
  readonly #findings: Findings;
  readonly #moves: MoveTree;
  readonly #readTransaction: typeof readTransaction;
  readonly #context: AuditContext;
  readonly #relayers = new Set<string>();
  /** By address, the idea that has the token. */
  readonly #tokens = new Map<string, string>();
  /** The kinds of contracts that transactions of this chamber call. */
  readonly #called = new Set<Candidates>();

  constructor(findings: Findings, { context, moves, readTransaction: read = readWithViem }: ServiceEventOptions) {
    this.#findings = findings;
    this.#context = context;
    this.#moves = moves;
    this.#readTransaction = read;
  }

  /** Without a reliable state only the root can be judged. */
  async check(event: ServiceEvent, eventId: number, decisions: Decisions): Promise<void> {
    const { state, lostEventId, isTreeKnown } = decisions;
    if (event.type === 'chamber.committed' && isTreeKnown) this.#checkRoot(event.payload, eventId);
    if (state === null || lostEventId !== undefined) {
      const reason = `event ${lostEventId ?? 1} is lost, and service events depend on it`;
      this.#findings.notEvaluated(reason, 'service-events', 'transactions');
      return;
    }
    if (event.type === 'idea.deployed') this.#checkToken(event.payload, eventId);
    this.#checkRules(event, eventId, state);
    if (isTreeKnown || event.type !== 'relay.commit_submitted') await this.#checkTransaction(event, eventId, state);
  }

  conclude(): void {
    for (const { doubt } of this.#called) if (doubt !== undefined) this.#findings.undecided('transactions', doubt);
    const { registries, factories } = this.#context;
    const names = [`signed by ${[...this.#relayers].join(' and ')}`];
    if (this.#called.has(registries)) names.push(`registry ${registries.list}`);
    if (this.#called.has(factories)) names.push(`factory ${factories.list}`);
    if (this.#relayers.size > 0) this.#findings.note('transactions', names.join(', '));
  }

  #checkRoot({ merkleRoot, eventCount }: ServicePayloads['chamber.committed'], eventId: number): void {
    const { size } = this.#moves;
    const root = this.#moves.root();
    const problem = `event ${eventId} commits ${merkleRoot} over ${eventCount} events, but the root of the ${size} moves is ${root}`;
    this.#findings.judge('root', [eventId], (merkleRoot !== root || eventCount !== size) && problem);
  }

  #checkRules(event: ServiceEvent, eventId: number, state: ChamberState): void {
    // The check `root` judges the count, by the lines themselves.
    const isCommitment = event.type === 'chamber.committed';
    const fact = isCommitment ? { ...event, payload: { ...event.payload, eventCount: state.moveCount } } : event;
    try {
      decideServiceFact(state, fact, Date.parse(event.ts));
      this.#findings.judge('service-events', [eventId]);
    } catch (error) {
      if (!(error instanceof ServiceFactRejected)) throw error;
      this.#findings.judge('service-events', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  /** Every deployment makes a token of its own. */
  #checkToken({ tokenAddress, ideaId }: ServicePayloads['idea.deployed'], eventId: number): void {
    const address = lowerCase(tokenAddress);
    const other = this.#tokens.get(address);
    this.#tokens.set(address, other ?? ideaId);
    const problem = `event ${eventId} names ${tokenAddress} as the token of ${ideaId}, which is that of ${other}`;
    if (other !== undefined) this.#findings.judge('service-events', [eventId], problem);
  }

  async #checkTransaction(event: ServiceEvent, eventId: number, state: ChamberState): Promise<void> {
    const { settlement, chamberId } = state;
    switch (event.type) {
      case 'relay.commit_submitted':
        return this.#checkCall(event.payload, eventId, [commitCall(chamberId, this.#moves.root())]);
      case 'relay.deploy_submitted': {
        const idea = graduates(state).find(({ ideaId }) => ideaId === event.payload.ideaId);
        return this.#checkCall(event.payload, eventId, idea ? deployCalls(chamberId, idea) : []);
      }
      case 'chamber.committed':
        return this.#checkRecorded(event.payload.txHash, eventId, settlement.commitSubmitted);
      case 'idea.deployed':
      case 'idea.deploy_failed': {
        const { txHash, ideaId } = event.payload;
        return this.#checkRecorded(txHash, eventId, deploymentOf(settlement, ideaId).submitted);
      }
      default:
        return unreachable(event);
    }
  }

  /** `due` is the call in every form that counts; empty when none is due. */
  async #checkCall(recorded: RelayTransaction, eventId: number, due: readonly string[]): Promise<void> {
    const problem = await this.#problemOfCall(recorded, due);
    this.#findings.judge('transactions', [eventId], problem && `event ${eventId}: rawTransaction ${problem}`);
  }

  async #problemOfCall(recorded: RelayTransaction, due: readonly string[]): Promise<string | undefined> {
    const signed = await this.#readTransaction(recorded.rawTransaction).catch(() => undefined);
    if (signed === undefined) return 'is not a signed call of the contracts';
    if (signed.txHash !== recorded.txHash) return `has the hash ${signed.txHash}, not txHash`;
    if (signed.nonce !== recorded.nonce) return `has the nonce ${signed.nonce}`;
    if (signed.chainId !== recorded.chainId) return `is for chain ${signed.chainId}`;
    const [chain = recorded.chainId] = this.#context.chains;
    this.#context.chains.add(chain);
    if (chain !== recorded.chainId) return `is for chain ${recorded.chainId}, although the log began on chain ${chain}`;
    this.#relayers.add(signed.from);
    const { call, functionName, to } = signed;
    if (!due.includes(call)) return `calls ${call}, which was not due`;
    if (!to) return 'calls no contract';
    const contracts = functionName === 'commitChamber' ? this.#context.registries : this.#context.factories;
    this.#called.add(contracts);
    return contracts.take(lowerCase(to)) ? undefined : `calls ${to}, which is not one of the contracts named`;
  }

  /** A transaction is logged before it is sent. One that is not may belong to a service whose log was lost since. */
  #checkRecorded(txHash: Hex | null, eventId: number, submitted: readonly RelayTransaction[]): void {
    if (txHash === null) return;
    const isRecorded = submitted.some((transaction) => transaction.txHash === txHash);
    const problem = `event ${eventId} names transaction ${txHash}, which is not in the log`;
    if (submitted.length > 0) this.#findings.judge('transactions', [eventId], !isRecorded && problem);
    else this.#findings.notEvaluated(`${problem}: use --rpc to ask the chain`, 'transactions');
  }
}

/** Loaded when the first transaction is met: in a browser it is most of the auditor's code. */
const readWithViem: typeof readTransaction = async (rawTransaction) =>
  (await import('./contracts.ts')).readTransaction(rawTransaction);
