// Compares the log's claims with the chain: root, commitment, tokens and failed deployments.
import { type Hex, parseEventLogs } from 'viem';
import { type Idea, lacksText } from '../../../projections/ideas.ts';
import { phaseEnd } from '../../../projections/phase.ts';
import { deploymentOf } from '../../../projections/settlement.ts';
import { instantOf, toTimestamp } from '../../vocabulary/values.ts';
import type { ChamberAudit, Claim } from '../chamber/chamber-audit.ts';
import { BLOCK_LEAD_MILLIS_MAX, blockTimeProblem } from '../chamber/service-events.ts';
import { lowerCase } from '../context.ts';
import { LOSS_CHECKS, mostSevere, type Problem, type Reason } from '../report/findings.ts';
import { compareBalances } from './balances.ts';
import { type ContractForm, formOf } from './calls.ts';
import type { AuditedChain, Transaction } from './chain-reader.ts';
import { ABI, callOf } from './contracts.ts';
import { judgeFailure } from './failed-deployment.ts';

/** A chamber audit, or part of one with its own findings. */
type Compared = Pick<ChamberAudit, 'findings' | 'claims' | 'balanceClaims' | 'moves' | 'decisions' | 'context'>;

interface Before {
  /** The registries' roots as read before the last lines: a live chamber may be settled during the audit. */
  readonly roots?: readonly Hex[] | undefined;
}

export async function compareChain(
  audit: Compared,
  chain: AuditedChain,
  chamberId?: number,
  { roots }: Before = {},
): Promise<void> {
  const { findings, claims, context } = audit;
  if (chamberId === undefined) {
    const reason = { follows: [...LOSS_CHECKS, 'rules', 'service-events'], why: 'the chamber is unknown' } as const;
    return findings.notEvaluated(reason, 'contract', 'claims', 'balances');
  }
  await compareBalances(audit, { chain, policy: context.policy });
  await compareRoot(audit, chain, chamberId, { roots });
  const comparison = new ClaimComparison(audit, chain, chamberId);
  for (const claim of claims) await comparison.judge(claim);
  if (context.factories.all.length > 0) findings.note('claims', `factory ${context.factories.list}`);
}

async function compareRoot(audit: Compared, chain: AuditedChain, chamberId: number, { roots: before }: Before) {
  const { findings, claims, moves, decisions } = audit;
  if (!decisions.isTreeKnown) return;
  const root = moves.root();
  const eventIds = claims.filter(({ event }) => event.type === 'chamber.committed').map(({ eventId }) => eventId);
  // If no line records the commitment, a root committed after the lines were read may cover more moves.
  const roots =
    before?.length || (before !== undefined && eventIds.length === 0) ? before : await chain.rootsOf(chamberId);
  if (roots.length === 0 && eventIds.length === 0) {
    const why = 'the registry holds no root for this chamber yet';
    return findings.notEvaluated({ needs: 'later lines', why }, 'contract');
  }
  const other = roots.find((each) => each !== root) ?? roots[0] ?? 'no root';
  const problem = `the registry holds ${other} for chamber ${chamberId}, but the root of the moves is ${root}`;
  findings.judge('contract', eventIds, other !== root && problem);
}

type EventOf<Type extends Claim['event']['type']> = Extract<Claim['event'], { type: Type }>;

interface Committed {
  readonly transaction: Transaction;
  /** The deployment forms that the registry's contracts accept. */
  readonly forms: readonly ContractForm[];
}

class ClaimComparison {
  readonly #audit: Compared;
  readonly #chain: AuditedChain;
  readonly #chamberId: number;
  /** The commitment; every token must be newer. */
  #committed: Committed | undefined;

  constructor(audit: Compared, chain: AuditedChain, chamberId: number) {
    this.#audit = audit;
    this.#chain = chain;
    this.#chamberId = chamberId;
  }

  async judge({ event, eventId }: Claim): Promise<void> {
    const problem = await this.#claimProblem(event);
    this.#audit.findings.assess('claims', [eventId], problem, `event ${eventId} (${event.type}): `);
  }

  async #claimProblem(event: Claim['event']): Promise<Problem> {
    const { txHash } = event.payload;
    if (txHash === null) return event.type === 'idea.deploy_failed' ? await this.#failureProblem(event) : undefined;
    const transaction = await this.#chain.transaction(txHash);
    if (transaction === undefined) return `the chain does not know transaction ${txHash}`;
    if (event.type === 'idea.deploy_failed') return await this.#revertProblem(event, transaction);
    if (transaction.status !== 'success') return `transaction ${txHash} was reverted`;
    return event.type === 'idea.deployed'
      ? this.#tokenProblem(event, transaction)
      : await this.#commitmentProblem(event, transaction);
  }

  async #commitmentProblem(event: EventOf<'chamber.committed'>, transaction: Transaction): Promise<Problem> {
    const { payload } = event;
    const registries = this.#chain.registries.map(lowerCase);
    const committed = this.#logsOf(transaction).find(
      (log) =>
        log.eventName === 'ChamberCommitted' &&
        registries.includes(lowerCase(log.address)) &&
        log.args.root === payload.merkleRoot,
    );
    if (committed !== undefined) this.#committed = { transaction, forms: await this.#chain.formsOf(committed.address) };
    else return `transaction ${payload.txHash} did not commit this root in the registry`;
    const { blockNumber, committedAt } = payload;
    const isMoved = transaction.blockNumber !== BigInt(blockNumber);
    return mostSevere(
      this.#earlyBlockProblem(transaction),
      isMoved ? this.#moved(transaction, event) : this.#timeProblem(transaction, committedAt, event),
    );
  }

  /** The root covers all reveals, so an earlier block means that a clock is wrong or that the service postdated lines. */
  #earlyBlockProblem({ at }: Transaction): Problem {
    const { state } = this.#audit.decisions;
    const end = (state && phaseEnd(state, 'ALLOCATE_REVEAL')) ?? 0;
    if (instantOf(at) >= end - this.#leadMillisMax) return undefined;
    const early = `its transaction is in a block dated ${at}, although moves were accepted until ${toTimestamp(end)}`;
    return { doubt: `${early}: --max-skew sets how far clocks may differ` };
  }

  get #leadMillisMax(): number {
    const { maxSkewSeconds = 0 } = this.#audit.context.policy;
    return Math.max(BLOCK_LEAD_MILLIS_MAX, maxSkewSeconds * 1_000);
  }

  #timeProblem(transaction: Transaction, recorded: string, event: Claim['event']): Problem {
    return transaction.at === recorded ? undefined : this.#moved(transaction, event);
  }

  /** Lines do not record that a transaction moved to another block, so the recorded time must have been plausible for the former block. */
  #moved({ blockNumber, at }: Transaction, event: Claim['event']): Problem {
    const { context, decisions } = this.#audit;
    if (context.policy.allowReorganized) {
      const times = decisions.state && blockTimeProblem(event, decisions.state, this.#leadMillisMax);
      return times ? { doubt: `it ${times}: --max-skew sets how far clocks may differ` } : undefined;
    }
    const place = `its transaction is in block ${blockNumber}, dated ${at}, not in the recorded one`;
    return { doubt: `${place}: --allow-reorganized accepts that the chain was reorganized` };
  }

  #tokenProblem(event: EventOf<'idea.deployed'>, transaction: Transaction): Problem {
    const { payload } = event;
    const { tokenAddress, txHash, graduatedAt } = payload;
    const idea = this.#ideaOf(payload.ideaId);
    if (idea === undefined) return unknownIdea(payload);
    const deployed = this.#logsOf(transaction).find(
      (log) => log.eventName === 'IdeaDeployed' && lowerCase(log.args.ideaToken) === lowerCase(tokenAddress),
    );
    if (deployed?.eventName !== 'IdeaDeployed') return `transaction ${txHash} did not deploy ${tokenAddress}`;
    const { ticker, creator } = deployed.args;
    if (ticker !== idea.ticker) return `${tokenAddress} has the ticker ${JSON.stringify(ticker)}, not ${idea.ticker}`;
    if (lowerCase(creator) !== lowerCase(idea.creatorWallet)) {
      return `the creator of ${tokenAddress} is ${creator}, not ${idea.creatorWallet}`;
    }
    const { factories } = this.#audit.context;
    const isKnown = factories.take(lowerCase(deployed.address));
    if (!isKnown)
      return `${tokenAddress} was deployed by ${deployed.address}, which is not one of the service’s factories`;
    if (factories.doubt !== undefined) this.#audit.findings.undecided('claims', factories.doubt);
    // The event lacks name and description, so the call is compared too.
    const isByOther = lowerCase(transaction.to ?? '') !== lowerCase(deployed.address);
    const why = `${transaction.to} deployed ${tokenAddress}, not the relayer`;
    const isWithheld = lacksText(idea);
    const isWrong = !isByOther && !isWithheld && !this.#isDeployment(idea, transaction);
    return mostSevere(
      isWrong ? `transaction ${txHash} did not deploy ${payload.ideaId}` : undefined,
      this.#timeProblem(transaction, graduatedAt, event),
      isByOther ? { limit: 'another contract', why } : undefined,
      isWithheld ? withheldTexts(idea) : undefined,
    );
  }

  /** The transaction must be a failed deployment of this idea at a factory. */
  async #revertProblem(event: EventOf<'idea.deploy_failed'>, transaction: Transaction): Promise<Problem> {
    const { ideaId, txHash } = event.payload;
    if (transaction.status === 'success') return `transaction ${txHash} succeeded`;
    const idea = this.#ideaOf(ideaId);
    if (idea === undefined) return unknownIdea(event.payload);
    const { factories } = this.#audit.context;
    const isFactory = transaction.to !== null && factories.take(lowerCase(transaction.to));
    if (isFactory && lacksText(idea)) return mostSevere(await this.#deployedTokenProblem(idea), withheldTexts(idea));
    if (!isFactory || !this.#isDeployment(idea, transaction)) return `transaction ${txHash} did not deploy ${ideaId}`;
    return await this.#failureProblem(event, transaction);
  }

  /** The call must fail in the chain state at the recorded time: a transaction may fail because of its gas, sender or time. */
  async #failureProblem({ payload, ts }: EventOf<'idea.deploy_failed'>, transaction?: Transaction): Promise<Problem> {
    const idea = this.#ideaOf(payload.ideaId);
    if (idea === undefined) return unknownIdea(payload);
    // Without the texts, the call can't be repeated.
    if (lacksText(idea)) return mostSevere(await this.#deployedTokenProblem(idea), withheldTexts(idea));
    if (this.#committed === undefined)
      return { follows: ['claims', 'service-events', ...LOSS_CHECKS], why: 'the commitment is not on the chain' };
    const { transaction: commitment, forms } = this.#committed;
    const { decisions, context } = this.#audit;
    const submitted = decisions.state ? deploymentOf(decisions.state.settlement, idea.ideaId).submitted : [];
    const failure = { chamberId: this.#chamberId, idea, forms, commitment, transaction, at: instantOf(ts) };
    return mostSevere(
      await this.#deployedTokenProblem(idea),
      await judgeFailure({ ...failure, submitted, factories: context.factories.all }, this.#chain),
    );
  }

  /** An idea whose deployment failed must have no token. */
  async #deployedTokenProblem({ ticker }: Idea): Promise<Problem> {
    const { factories } = this.#audit.context;
    if (factories.doubt !== undefined) this.#audit.findings.undecided('claims', factories.doubt);
    if (factories.all.length === 0) return { needs: 'chain', why: 'the log names no factory: use --factory' };
    const fromBlock = this.#committed?.transaction.blockNumber ?? 0n;
    const deployed = await this.#chain.deployments(factories.all, this.#chamberId, fromBlock);
    if (deployed === undefined) return { needs: 'chain', why: 'the RPC does not search the factory’s events' };
    const token = deployed.find(({ args }) => args.ticker === ticker);
    return token && `the factory deployed ${ticker} at ${token.args.ideaToken}`;
  }

  #isDeployment(idea: Idea, transaction: Transaction): boolean {
    return formOf(callOf(transaction), this.#chamberId, idea) !== undefined;
  }

  #ideaOf(ideaId: string): Idea | undefined {
    return this.#audit.decisions.state?.ideas.find((idea) => idea.ideaId === ideaId);
  }

  #logsOf({ logs }: Transaction) {
    return parseEventLogs({ abi: ABI, logs, args: { chamberId: BigInt(this.#chamberId) } });
  }
}

function withheldTexts({ ideaId }: Idea): Reason {
  return { needs: 'originals', why: `the texts of ${ideaId} are withheld` };
}

/** A finding about service events or lost lines explains why the idea is unknown. */
function unknownIdea({ ideaId }: { readonly ideaId: string }): Reason {
  return { follows: ['service-events', ...LOSS_CHECKS], why: `${ideaId} is not known` };
}
