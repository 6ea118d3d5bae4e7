// Checks the service events, which follow the moves: whether the rules allow them, and whether their transactions make the calls
// that the state requires. Only the chain shows whether the calls were executed.
import type { ChamberState } from '../../../projections/chamber.ts';
import { graduates } from '../../../projections/graduation.ts';
import { type Idea, lacksText } from '../../../projections/ideas.ts';
import { phaseEnd } from '../../../projections/phase.ts';
import { type Deployed, type DeployFailed, deploymentOf } from '../../../projections/settlement.ts';
import { decideServiceFact, ServiceFactRejected } from '../../moves/service-facts.ts';
import type { ServiceEvent } from '../../vocabulary/events.ts';
import type { RecordedTransaction, ServicePayloads } from '../../vocabulary/service-payloads.ts';
import { type Hex, instantOf, toTimestamp } from '../../vocabulary/values.ts';
import { WITHHELD_TEXT } from '../../vocabulary/withheld.ts';
import { commitCall, deployCalls } from '../chain/calls.ts';
import type { readTransaction } from '../chain/contracts.ts';
import { type AuditContext, type Candidates, lowerCase, nameOf, type Subject } from '../context.ts';
import { type Findings, LOSS_CHECKS } from '../report/findings.ts';
import type { Decisions } from './decisions.ts';
import type { MoveTree } from './move-tree.ts';

export interface ServiceEventOptions {
  readonly context: AuditContext;
  readonly readTransaction?: typeof readTransaction | undefined;
  readonly moves: MoveTree;
}

export class ServiceEventChecks {
  readonly #findings: Findings;
  readonly #moves: MoveTree;
  readonly #readTransaction: typeof readTransaction;
  readonly #context: AuditContext;
  readonly #relayers = new Set<string>();
  #committed: Hex | null = null;
  readonly #called = new Set<Candidates>();
  /** By subject, oldest first. */
  readonly #submitted = new Map<string, Signed[]>();
  /**
   * Contradictions that only the chain can judge: outcomes of transactions outside the log, and times and tokens that no correct chain
   * has. An honest service records what its chain reports, which a reorganization or a lying contract may make contradictory.
   */
  readonly #forChain: { readonly check: 'service-events' | 'transactions'; readonly problem: string }[] = [];

  constructor(findings: Findings, { context, moves, readTransaction: read = readWithViem }: ServiceEventOptions) {
    this.#findings = findings;
    this.#context = context;
    this.#moves = moves;
    this.#readTransaction = read;
  }

  /** Without a known state, checks only the root. */
  async check(event: ServiceEvent, eventId: number, decisions: Decisions): Promise<void> {
    const { state, lostEventId, isTreeKnown } = decisions;
    if (event.type === 'chamber.committed' && isTreeKnown) this.#checkRoot(event.payload, eventId);
    if (lostEventId !== undefined) {
      const why = `event ${lostEventId} is lost, and service events depend on it`;
      this.#findings.notEvaluated({ follows: LOSS_CHECKS, why }, 'service-events', 'transactions');
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
      if (event.type === 'chamber.committed') this.#committed = event.payload.txHash;
      else this.#checkNonces(event.payload, eventId, subject);
      return;
    }
    const { rawTransaction } = event.payload;
    if (rawTransaction === undefined) {
      // A stub of a transaction keeps only the hash.
      this.#noteSubmitted(event.payload, undefined, subject);
      const problem = `event ${eventId} is a stub of a transaction, but no text of ${subject.ideaId} is withheld`;
      this.#findings.judge('withheld', [eventId], !hasWithheldIdea(event, state) && problem);
      this.#findings.notEvaluated(withheldCall(eventId), 'transactions');
      return;
    }
    const idea = ideaOf(event, state);
    const lacksTexts = idea !== undefined && lacksText(idea);
    const signed = await this.#readTransaction(rawTransaction).catch(() => undefined);
    this.#noteSubmitted(event.payload, signed, subject);
    if (!isTreeKnown && event.type === 'relay.commit_submitted') return;
    this.#checkCall(event.payload, eventId, { signed, due: this.#dueCalls(event, state), subject, lacksTexts });
  }

  /** If `asksChain`, the check `claims` decides the contradictions that the lines leave open. */
  conclude(asksChain: boolean): void {
    for (const { check, problem } of this.#forChain) {
      if (asksChain)
        this.#findings.notEvaluated({ needs: 'chain', why: `${problem}: the claims check queries the chain` }, check);
      else this.#findings.undecided(check, `${problem}: --rpc queries the chain`);
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
    // The check `root` compares eventCount with the lines, so this check assumes the right count.
    const isCommitment = event.type === 'chamber.committed' && state !== null;
    const fact = isCommitment ? { ...event, payload: { ...event.payload, eventCount: state.moveCount } } : event;
    try {
      decideServiceFact(state, fact, instantOf(event.ts));
      const times = state === null ? undefined : blockTimeProblem(event, state);
      const reason = state === null ? undefined : reasonProblem(event, state);
      if (reason !== undefined) this.#findings.judge('service-events', [eventId], `event ${eventId} ${reason}`);
      else if (event.type === 'chamber.committed' && event.payload.blockNumber === 0)
        this.#findings.judge(
          'service-events',
          [eventId],
          `event ${eventId} names block 0, which contains no transactions`,
        );
      else if (times === undefined) this.#findings.judge('service-events', [eventId]);
      else this.#forChain.push({ check: 'service-events', problem: `event ${eventId} ${times}` });
    } catch (error) {
      if (!(error instanceof ServiceFactRejected)) throw error;
      this.#findings.judge('service-events', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  #noteSubmitted({ txHash, nonce }: RecordedTransaction, signed: SignedCall | undefined, subject: Subject): void {
    const all = this.#submitted.get(nameOf(subject)) ?? [];
    all.push({ txHash, nonce, from: signed?.from });
    this.#submitted.set(nameOf(subject), all);
  }

  /** Every deployment creates a new token, so no two ideas may name the same one. */
  #checkToken({ tokenAddress, ideaId }: ServicePayloads['idea.deployed'], eventId: number, subject: Subject): void {
    const { tokens, registries, factories } = this.#context;
    const address = lowerCase(tokenAddress) as Hex;
    const other = tokens.conflict(address, subject);
    const named = `event ${eventId} names ${tokenAddress} as the token of ${ideaId}`;
    if (other !== undefined)
      this.#findings.judge('service-events', [eventId], `${named}, which is the token of ${nameOf(other)}`);
    else if (address === ZERO_ADDRESS || [...registries.all, ...factories.all].includes(address))
      this.#forChain.push({ check: 'service-events', problem: `${named}, which is not a token` });
  }

  /** An account's transactions are mined in the order of their nonces, and a deployment after its commitment. */
  #checkNonces({ txHash }: Pick<Deployed | DeployFailed, 'txHash'>, eventId: number, subject: Subject): void {
    const { chamberId } = subject;
    const named = (one: Signed) => one.txHash === txHash;
    const own = this.#submitted.get(nameOf(subject))?.find(named);
    if (own === undefined) return;
    const commitments = this.#submitted.get(nameOf({ chamberId, ideaId: undefined })) ?? [];
    const first = commitments.findIndex((one) => one.txHash === this.#committed);
    // After a reorganization, a later transaction may be the commitment.
    const nonces =
      first < 0
        ? []
        : commitments
            .slice(first)
            .filter(({ from }) => from === own.from)
            .map(({ nonce }) => nonce);
    if (nonces.length === 0 || own.nonce > Math.min(...nonces)) return;
    const problem = `event ${eventId} names the transaction with nonce ${own.nonce}, which its account used before the commitment`;
    this.#forChain.push({ check: 'service-events', problem });
  }

  #dueCalls({ type, payload }: Extract<ServiceEvent, { type: `relay.${string}` }>, state: ChamberState) {
    const { chamberId } = state;
    if (type === 'relay.commit_submitted') return [commitCall(chamberId, this.#moves.root())];
    const idea = graduates(state).find(({ ideaId }) => ideaId === payload.ideaId);
    return idea ? deployCalls(chamberId, idea) : [];
  }

  #checkCall(recorded: RecordedTransaction, eventId: number, { signed, due, subject, lacksTexts }: Due): void {
    const { signedFor, namedFor } = this.#context;
    const claimant = namedFor.of(recorded.txHash, subject);
    const unreadable = this.#transactionProblem(recorded, signed);
    // The call contains the withheld texts, so it can't be compared.
    if (lacksTexts) this.#findings.notEvaluated(withheldCall(eventId), 'transactions');
    const isUndue = !lacksTexts && unreadable === undefined && signed !== undefined && !due.includes(signed.call);
    const problem =
      unreadable ??
      (isUndue ? `calls ${signed.call}, which was not due` : undefined) ??
      (signed && this.#calledContractProblem(signed, due)) ??
      (claimant && `is for ${nameOf(subject)}, but its hash was named as the outcome of ${nameOf(claimant)}`) ??
      (signed && this.#nonceProblem(signed, eventId, subject));
    signedFor.conflict(recorded.txHash, subject);
    const code = isUndue && signed.functionName === 'commitChamber' ? 'undue-commitment' : undefined;
    this.#findings.judge('transactions', [eventId], problem && `event ${eventId}: rawTransaction ${problem}`, { code });
  }

  /**
   * A service never reuses a nonce that it finds in its log. It reads all lines of this chamber each time, but those of other chambers
   * only as far back as a reorganization may reach.
   */
  #nonceProblem({ from, nonce }: SignedCall, eventId: number, subject: Subject): string | undefined {
    const value = `${lowerCase(from)}${nonce.toString(16).padStart(NONCE_DIGITS, '0')}` as Hex;
    const other = this.#context.nonces.conflict(value, subject);
    if (other === undefined) return undefined;
    const problem = `has the nonce ${nonce}, with which ${from} signed for ${nameOf(other)}`;
    if (other.chamberId === subject.chamberId) return problem;
    this.#forChain.push({ check: 'transactions', problem: `event ${eventId}: rawTransaction ${problem}` });
    return undefined;
  }

  #transactionProblem(recorded: RecordedTransaction, signed: SignedCall | undefined): string | undefined {
    if (signed === undefined) return 'is not a signed call of the contracts';
    if (signed.txHash !== recorded.txHash) return `has the hash ${signed.txHash}, not txHash`;
    if (signed.nonce !== recorded.nonce) return `has the nonce ${signed.nonce}`;
    if (signed.chainId !== recorded.chainId) return `is for chain ${signed.chainId}`;
    const [chain = recorded.chainId] = this.#context.chains;
    this.#context.chains.add(chain);
    if (chain !== recorded.chainId)
      return `is for chain ${recorded.chainId}, although the log began with chain ${chain}`;
    this.#relayers.add(signed.from);
    return undefined;
  }

  #calledContractProblem({ call, functionName, to, value }: SignedCall, due: readonly string[]): string | undefined {
    if (!to || to === ZERO_ADDRESS) return 'calls no contract';
    // Only a quorum deployment may send value.
    if (value && call === due[0]) return `sends ${value} wei, which the contract does not accept`;
    const contracts = functionName === 'commitChamber' ? this.#context.registries : this.#context.factories;
    this.#called.add(contracts);
    if (contracts.take(lowerCase(to))) return undefined;
    const isRegistry = contracts === this.#context.factories && this.#context.registries.has(lowerCase(to));
    return `calls ${to}, which is ${isRegistry ? 'the registry' : 'not one of the service’s contracts'}`;
  }

  /**
   * The service logs a transaction before sending it. A transaction outside the log may come from a service that lost its log, or from an
   * operator who replaced a stuck transaction, but it must not be logged for another subject.
   */
  #checkRecorded(txHash: Hex | null, eventId: number, subject: Subject): void {
    if (txHash === null) return;
    const { signedFor, namedFor } = this.#context;
    const claimant = namedFor.conflict(txHash, subject);
    const other = signedFor.of(txHash, subject);
    const named = `event ${eventId} names transaction ${txHash}`;
    const isRecorded = this.#submitted.get(nameOf(subject))?.some((one) => one.txHash === txHash) === true;
    if (isRecorded || other !== undefined) {
      const problem = other && `${named}, which is for ${nameOf(other)}`;
      this.#findings.judge('transactions', [eventId], !isRecorded && problem);
    } else if (claimant !== undefined)
      this.#findings.judge(
        'transactions',
        [eventId],
        `${named}, which was named as the outcome of ${nameOf(claimant)}`,
      );
    else this.#forChain.push({ check: 'transactions', problem: `${named}, which is not in the log` });
  }
}

/** The accepted difference between the clocks of the chain and the service. */
export const BLOCK_LEAD_MILLIS_MAX = 15_000;
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;
const NONCE_DIGITS = 16;

/** Returns the problem with a block that is newer than its line, or older than the moves or the commitment. */
export function blockTimeProblem(
  { type, payload, ts }: ServiceEvent,
  state: ChamberState,
  leadMillisMax = BLOCK_LEAD_MILLIS_MAX,
): string | undefined {
  if (type !== 'chamber.committed' && type !== 'idea.deployed') return undefined;
  const at = type === 'chamber.committed' ? payload.committedAt : payload.graduatedAt;
  const end = phaseEnd(state, 'ALLOCATE_REVEAL') ?? 0;
  const named = `names a block dated ${at}`;
  if (instantOf(at) > instantOf(ts) + leadMillisMax) return `${named}, although the line is dated ${ts}`;
  if (instantOf(at) < end - leadMillisMax) return `${named}, although moves were accepted until ${toTimestamp(end)}`;
  const { committedAt = at } = type === 'idea.deployed' ? (state.settlement.committed ?? {}) : {};
  if (instantOf(at) >= instantOf(committedAt) - leadMillisMax) return undefined;
  return `${named}, although the commitment is in a block dated ${committedAt}`;
}

/** The reason WITHHELD_TEXT is valid only for an idea with a withheld text and no logged transaction. */
function reasonProblem(event: ServiceEvent, state: ChamberState): string | undefined {
  const isGiven = event.type === 'idea.deploy_failed' && event.payload.reason === WITHHELD_TEXT;
  // A stub withholds the reason itself.
  if (!isGiven || event.withheld !== undefined) return undefined;
  const { ideaId } = event.payload;
  if (!hasWithheldIdea(event, state)) return `gives the reason ${WITHHELD_TEXT}, but no text of ${ideaId} is withheld`;
  const isSubmitted = deploymentOf(state.settlement, ideaId).submitted.length > 0;
  return isSubmitted ? `gives the reason ${WITHHELD_TEXT}, although a transaction of ${ideaId} is logged` : undefined;
}

/** `from` is undefined for bytes that are not a transaction. */
interface Signed {
  readonly txHash: Hex;
  readonly nonce: number;
  readonly from: string | undefined;
}

type SignedCall = Awaited<ReturnType<typeof readTransaction>>;

interface Due {
  readonly signed: SignedCall | undefined;
  /** The expected call in each accepted form; empty if no call is expected. */
  readonly due: readonly string[];
  readonly subject: Subject;
  /** Whether the latest version of the idea has a withheld text whose original was not provided. */
  readonly lacksTexts: boolean;
}

function ideaOf({ payload }: ServiceEvent, { ideas }: ChamberState): Idea | undefined {
  return 'ideaId' in payload ? ideas.find(({ ideaId }) => ideaId === payload.ideaId) : undefined;
}

/** Whether the latest version of the event's idea has a withheld text. */
function hasWithheldIdea(event: ServiceEvent, state: ChamberState): boolean {
  return (ideaOf(event, state)?.withheldTexts.length ?? 0) > 0;
}

function withheldCall(eventId: number) {
  const why = `the transaction of event ${eventId} contains withheld texts`;
  return { needs: 'originals', why } as const;
}

function subjectOf({ payload }: ServiceEvent, { chamberId }: ChamberState): Subject {
  return { chamberId, ideaId: 'ideaId' in payload ? payload.ideaId : undefined };
}

/** Loads viem with the first transaction: in a browser, viem is most of the auditor's code. */
const readWithViem: typeof readTransaction = async (rawTransaction) =>
  (await import('../chain/contracts.ts')).readTransaction(rawTransaction);
