// The service's own events, which follow the moves: whether the rules allow them, and whether their transactions make the
// calls that the chamber's state requires. Only the chain shows whether they were executed.
import type { ChamberState } from '../../../projections/chamber.ts';
import { graduates } from '../../../projections/graduation.ts';
import { phaseEnd } from '../../../projections/phase.ts';
import { decideServiceFact, ServiceFactRejected } from '../../moves/service-facts.ts';
import type { ServiceEvent } from '../../vocabulary/events.ts';
import type { RelayTransaction, ServicePayloads } from '../../vocabulary/service-payloads.ts';
import { type Hex, toTimestamp } from '../../vocabulary/values.ts';
import { commitCall, deployCalls } from '../chain/calls.ts';
import type { readTransaction } from '../chain/contracts.ts';
import { type AuditContext, type Candidates, lowerCase, nameOf, type Subject } from '../context.ts';
import { type Findings, OF_LOSS } from '../report/findings.ts';
import type { Decisions } from './decisions.ts';
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
  /** The kinds of contracts that transactions of this chamber call. */
  readonly #called = new Set<Candidates>();
  /** The hashes of the transactions in the log, by subject. */
  readonly #submitted = new Map<string, Set<Hex>>();
  /** What the chain decides: outcomes by transactions that are not in the log, and blocks that are older than what they hold. */
  readonly #forChain: { readonly check: 'service-events' | 'transactions'; readonly problem: string }[] = [];

  constructor(findings: Findings, { context, moves, readTransaction: read = readWithViem }: ServiceEventOptions) {
    this.#findings = findings;
    this.#context = context;
    this.#moves = moves;
    this.#readTransaction = read;
  }

  /** Only the root can be judged without a reliable state. */
  async check(event: ServiceEvent, eventId: number, decisions: Decisions): Promise<void> {
    const { state, lostEventId, isTreeKnown } = decisions;
    if (event.type === 'chamber.committed' && isTreeKnown) this.#checkRoot(event.payload, eventId);
    if (lostEventId !== undefined) {
      const why = `event ${lostEventId} is lost, and service events depend on it`;
      this.#findings.notEvaluated({ follows: OF_LOSS, why }, 'service-events', 'transactions');
      return;
    }
    if (state === null) {
      this.#checkRules(event, eventId, state);
      return;
    }
    const subject = subjectOf(event, state);
    if (event.type === 'idea.deployed') this.#checkToken(event.payload, eventId, subject);
    this.#checkRules(event, eventId, state);
    if (event.type !== 'relay.commit_submitted' && event.type !== 'relay.deploy_submitted') {
      this.#checkRecorded(event.payload.txHash, eventId, subject);
      return;
    }
    this.#noteSubmitted(event.payload, subject);
    if (!isTreeKnown && event.type === 'relay.commit_submitted') return;
    await this.#checkCall(event.payload, eventId, { due: this.#dueCalls(event, state), subject });
  }

  /** What the lines leave to the chain, the check `claims` decides if `asksChain` is set. */
  conclude(asksChain: boolean): void {
    for (const { check, problem } of this.#forChain) {
      if (asksChain) this.#findings.notEvaluated({ needs: 'chain', why: `${problem}: the chain is asked` }, check);
      else this.#findings.undecided(check, `${problem}: say with --rpc which chain has it`);
    }
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

  #checkRules(event: ServiceEvent, eventId: number, state: ChamberState | null): void {
    // The check `root` judges the count, by the lines themselves.
    const isCommitment = event.type === 'chamber.committed' && state !== null;
    const fact = isCommitment ? { ...event, payload: { ...event.payload, eventCount: state.moveCount } } : event;
    try {
      decideServiceFact(state, fact, Date.parse(event.ts));
      const early = isCommitment ? earlyBlock(event.payload, state) : undefined;
      if (early === undefined) this.#findings.judge('service-events', [eventId]);
      else this.#forChain.push({ check: 'service-events', problem: `event ${eventId} names a block ${early}` });
    } catch (error) {
      if (!(error instanceof ServiceFactRejected)) throw error;
      this.#findings.judge('service-events', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  #noteSubmitted({ txHash }: RelayTransaction, subject: Subject): void {
    const hashes = this.#submitted.get(nameOf(subject)) ?? new Set();
    this.#submitted.set(nameOf(subject), hashes.add(txHash));
  }

  /** Every deployment makes a token of its own. */
  #checkToken({ tokenAddress, ideaId }: ServicePayloads['idea.deployed'], eventId: number, subject: Subject): void {
    const other = this.#context.tokens.conflict(lowerCase(tokenAddress) as Hex, subject);
    if (other === undefined) return;
    const problem = `event ${eventId} names ${tokenAddress} as the token of ${ideaId}, which is that of ${nameOf(other)}`;
    this.#findings.judge('service-events', [eventId], problem);
  }

  #dueCalls({ type, payload }: Extract<ServiceEvent, { payload: RelayTransaction }>, state: ChamberState) {
    const { chamberId } = state;
    if (type === 'relay.commit_submitted') return [commitCall(chamberId, this.#moves.root())];
    const idea = graduates(state).find(({ ideaId }) => ideaId === payload.ideaId);
    return idea ? deployCalls(chamberId, idea) : [];
  }

  async #checkCall(recorded: RelayTransaction, eventId: number, { due, subject }: Due): Promise<void> {
    const { signedFor, namedFor } = this.#context;
    const claimant = namedFor.of(recorded.txHash, subject);
    const problem =
      (await this.#problemOfCall(recorded, due)) ??
      (claimant && `is for ${nameOf(subject)}, and its hash was named as the outcome of ${nameOf(claimant)}`);
    signedFor.conflict(recorded.txHash, subject);
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
    const { call, functionName, to, value } = signed;
    if (!due.includes(call)) return `calls ${call}, which was not due`;
    if (!to) return 'calls no contract';
    // A quorum deployment alone, the other form that counts, may pay.
    if (value && call === due[0]) return `sends ${value} wei, which the contract refuses`;
    const contracts = functionName === 'commitChamber' ? this.#context.registries : this.#context.factories;
    this.#called.add(contracts);
    return contracts.take(lowerCase(to)) ? undefined : `calls ${to}, which is not one of the contracts named`;
  }

  /**
   * A transaction is logged before it is sent. One that is not may belong to a service whose log was lost since, or was sent in
   * place of a stuck one by the operator, but not if it makes another call of the log.
   */
  #checkRecorded(txHash: Hex | null, eventId: number, subject: Subject): void {
    if (txHash === null) return;
    const { signedFor, namedFor } = this.#context;
    namedFor.conflict(txHash, subject);
    const other = signedFor.of(txHash, subject);
    const problem = `event ${eventId} names transaction ${txHash}, which is ${other === undefined ? 'not in the log' : `for ${nameOf(other)}`}`;
    const isRecorded = this.#submitted.get(nameOf(subject))?.has(txHash) === true;
    if (isRecorded || other !== undefined) this.#findings.judge('transactions', [eventId], !isRecorded && problem);
    else this.#forChain.push({ check: 'transactions', problem });
  }
}

/** The clocks of chains and services differ by some seconds. */
const BLOCK_LEAD_MILLIS_MAX = 15_000;

/** What is open about a commitment whose block is older than the end of the reveals, over which it commits. */
function earlyBlock({ committedAt }: ServicePayloads['chamber.committed'], state: ChamberState): string | undefined {
  const end = phaseEnd(state, 'ALLOCATE_REVEAL') ?? 0;
  if (Date.parse(committedAt) >= end - BLOCK_LEAD_MILLIS_MAX) return undefined;
  return `of ${committedAt}, although moves were accepted until ${toTimestamp(end)}`;
}

interface Due {
  /** The call in every form that counts; empty when none is due. */
  readonly due: readonly string[];
  readonly subject: Subject;
}

/** What its transaction is for. */
function subjectOf({ payload }: ServiceEvent, { chamberId }: ChamberState): Subject {
  return { chamberId, ideaId: 'ideaId' in payload ? payload.ideaId : undefined };
}

/** Loaded when the first transaction is met: in a browser it is most of the auditor's code. */
const readWithViem: typeof readTransaction = async (rawTransaction) =>
  (await import('../chain/contracts.ts')).readTransaction(rawTransaction);
