// Plays random chambers from creation to settlement, reproducible from a seed: with and without rounds, with silent members,
// members who do not reveal or who spread their allocation evenly, amended and withdrawn ideas, too few members, and failed
// deployments. All chambers pass through each phase together.
import type { ChamberState } from '../../projections/chamber.ts';
import { graduates } from '../../projections/graduation.ts';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { turnHolderAt } from '../../projections/turn.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import { BPS_TOTAL, STANCES, toTimestamp } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, recordCommit } from './chambers.ts';
import { HOUR } from './clock.ts';
import { Random } from './random.ts';
import { Signer } from './signer.ts';
import { registrationOf, type TestService } from './test-service.ts';

const AGENTS = 5;
/** The number of chambers with concurrent moves. */
const CHAMBERS_AT_ONCE = 50;

/** Plays chambers, and returns the ids of the settled ones. */
export async function playToSettlement(service: TestService, count: number, seed: number): Promise<readonly number[]> {
  const random = new Random(seed);
  const agents = Array.from({ length: AGENTS }, () => new Signer(random.bytes(32)));
  for (const [index, agent] of agents.entries()) {
    const label = index % 2 === 0 ? { label: `Agent ${index} é` } : {};
    await service.must('POST', '/register', { body: { ...registrationOf(agent), ...label } });
  }
  const chambers: Player[] = [];
  for (let index = 0; index < count; index++) {
    const player = new Player(service, agents, new Random(random.below(2 ** 32)));
    await player.create();
    chambers.push(player);
  }
  const { clock } = service;
  const start = clock.read();
  for (let hour = 0; hour <= 5; hour++) {
    clock.set(start + hour * HOUR);
    for (let first = 0; first < count; first += CHAMBERS_AT_ONCE) {
      await Promise.all(chambers.slice(first, first + CHAMBERS_AT_ONCE).map((chamber) => chamber.playOn()));
    }
  }
  return chambers.map(({ chamberId }) => chamberId);
}

type Body = Readonly<Record<string, unknown>>;

class Player {
  chamberId = 0;
  readonly #service: TestService;
  readonly #random: Random;
  readonly #creator: Signer;
  readonly #members: readonly Signer[];
  readonly #proposing: ReadonlySet<string>;
  readonly #committing: readonly Signer[];
  readonly #revealing: readonly Signer[];
  readonly #allocations = new Map<string, ReturnType<typeof allocationOf>>();
  /** The remaining turns in each phase with turns. */
  readonly #turnsLeft = { PROPOSAL: 8, DEBATE: 8 };

  constructor(service: TestService, agents: readonly Signer[], random: Random) {
    this.#service = service;
    this.#random = random;
    this.#creator = random.pick(agents);
    const joins = random.pick([0, 0.5, 0.7, 0.9, 1]);
    this.#members = agents.filter(() => random.chance(joins));
    this.#proposing = new Set(this.#members.filter(() => random.chance(0.6)).map(({ did }) => did));
    this.#committing = this.#members.filter(() => random.chance(0.9));
    const willReveal = random.pick([0, 0.6, 1, 1]);
    this.#revealing = this.#committing.filter(() => random.chance(willReveal));
  }

  async create(): Promise<void> {
    const random = this.#random;
    const minMembers = random.chance(0.3) ? 1 + random.below(AGENTS) : undefined;
    const isPaced = this.#members.length >= (minMembers ?? 1) && random.chance(0.4);
    const pace = isPaced ? { rounds: { proposal: 1, debate: 2 }, turnSeconds: 600 } : {};
    const body = {
      name: random.pick(['Garden', 'Räte "🏛"', '\u2028 = \\']),
      ...deadlinesFrom(this.#service.clock.read()),
      minBackersForGraduation: 1 + random.below(3),
      ...(random.chance(0.5) && { topic: 'What to build' }),
      ...pace,
      ...(minMembers !== undefined && { minMembers }),
    };
    this.chamberId = (await this.#service.must('POST', '/chambers', { by: this.#creator, body })).chamberId;
    for (const by of this.#members) await this.#move(by, 'join');
    if (isPaced) await this.#move(this.#creator, 'start');
  }

  /** Makes every possible move. */
  async playOn(): Promise<void> {
    for (;;) {
      const state = await this.#state();
      const now = this.#service.forum.now();
      if (isClosed(state, now)) return await this.#settle(state);
      const step = this.#stepOf(state, now);
      if (step === undefined) return;
      const [by, path, body] = step;
      await this.#move(by, path, body);
    }
  }

  #stepOf(state: ChamberState, now: number): readonly [by: Signer, path: string, body?: Body] | undefined {
    const phase = phaseAt(state, now);
    if (phase === 'PROPOSAL' || phase === 'DEBATE') {
      const holder = this.#members.find(({ did }) => did === turnHolderAt(state, now));
      if (holder === undefined || this.#turnsLeft[phase] === 0) return undefined;
      const mayPropose = phase === 'PROPOSAL' && this.#proposing.has(holder.did);
      if (mayPropose && !state.ideas.some(({ creatorDid }) => creatorDid === holder.did)) {
        const ticker = `T${state.ideas.length}`;
        return [holder, 'propose', { name: `Idea ${ticker} 漢`, ticker, description: '' }];
      }
      const change = this.#changeBy(holder, state, phase);
      if (change !== undefined) return [holder, ...change];
      this.#turnsLeft[phase]--;
      return [holder, 'pass'];
    }
    if (phase === 'ALLOCATE_COMMIT') {
      const by = this.#committing.find(({ did }) => !state.commitments.has(did));
      return by && [by, 'allocate/commit', this.#allocationOf(by, state).commit];
    }
    if (phase !== 'ALLOCATE_REVEAL') return undefined;
    const by = this.#revealing.find(({ did }) => state.commitments.has(did) && !state.reveals.has(did));
    return by && [by, 'allocate/reveal', this.#allocationOf(by, state).reveal];
  }

  /** Lets the holder of the turn change an idea, sometimes. */
  #changeBy(
    { did }: Signer,
    { ideas }: ChamberState,
    phase: 'PROPOSAL' | 'DEBATE',
  ): readonly [string, Body] | undefined {
    const random = this.#random;
    const alive = ideas.filter(({ isWithdrawn }) => !isWithdrawn);
    const own = alive.find(({ creatorDid }) => creatorDid === did);
    if (own !== undefined && random.chance(0.1)) return ['withdraw', { ideaId: own.ideaId }];
    if (phase === 'PROPOSAL' || alive.length === 0) return undefined;
    const { ideaId, name, versions } = own ?? random.pick(alive);
    if (own !== undefined && versions.length < 16 && random.chance(0.3)) return ['amend', { ideaId, name: `${name}'` }];
    if (random.chance(0.6)) return undefined;
    const [{ eventId: replyTo }] = versions;
    return ['debate', { ideaId, comment: 'hm', stance: random.pick(STANCES), ...(random.chance(0.5) && { replyTo }) }];
  }

  /** Returns even shares, so that ideas often tie; sometimes none, or 0 bps. */
  #allocationOf({ did }: Signer, { ideas }: ChamberState) {
    const known = this.#allocations.get(did);
    if (known !== undefined) return known;
    const chosen = ideas.filter(({ isWithdrawn }) => !isWithdrawn && this.#random.chance(0.7));
    const given = this.#random.pick([0, 5_000, BPS_TOTAL]);
    const share = chosen.length === 0 ? 0 : Math.floor(given / chosen.length);
    const allocation = allocationOf(
      this.chamberId,
      { did },
      Object.fromEntries(chosen.map(({ ideaId }) => [ideaId, share])),
    );
    this.#allocations.set(did, allocation);
    return allocation;
  }

  async #settle(state: ChamberState): Promise<void> {
    if (state.settlement.committed !== null) return;
    const { forum } = this.#service;
    await recordCommit(forum, this.chamberId);
    for (const { ideaId } of graduates(state)) {
      const fact = this.#random.chance(0.3)
        ? failed(ideaId)
        : deployed(ideaId, { chamberId: this.chamberId, now: forum.now() });
      await forum.submit({ operation: 'record', chamberId: this.chamberId, fact });
    }
  }

  async #state(): Promise<ChamberState> {
    return (await this.#service.forum.findChamber(`${this.chamberId}`)).state;
  }

  #move(by: Signer, path: string, body: Body = {}): Promise<unknown> {
    return this.#service.must('POST', `/chambers/${this.chamberId}/${path}`, { by, body });
  }
}

function failed(ideaId: string): ServiceFact {
  return { type: 'idea.deploy_failed', payload: { ideaId, txHash: null, reason: 'the ticker is “taken”' } };
}

/** Returns the token's event, with a unique address and transaction. */
function deployed(
  ideaId: string,
  { chamberId, now }: { readonly chamberId: number; readonly now: number },
): ServiceFact {
  const unique = `${chamberId}${ideaId.replace('idea-', 'a')}`;
  const tokenAddress = `0x${unique.padStart(40, '0')}` as const;
  const txHash = `0x${unique.padStart(64, '7')}` as const;
  return { type: 'idea.deployed', payload: { ideaId, tokenAddress, txHash, graduatedAt: toTimestamp(now) } };
}
