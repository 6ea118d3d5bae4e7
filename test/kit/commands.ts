// Generates random commands, reproducible from a seed for any store: agents, chambers, moves that mostly fit the phase, clock
// steps, and roots of finished chambers.
import { readPages } from '../../src/log/pages.ts';
import type { Phase } from '../../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom, recordCommit } from './chambers.ts';
import { HOUR } from './clock.ts';
import { Random } from './random.ts';
import { Signer } from './signer.ts';
import { registrationOf, type TestService } from './test-service.ts';

type Move = readonly [path: string, body?: unknown];

export class Commands {
  readonly #random: Random;
  readonly #agents: readonly Signer[];
  #chambers = 0;

  /** Whether some chambers have rounds. */
  readonly #hasRounds: boolean;
  constructor(seed: number, { agents = 5, hasRounds = false } = {}) {
    this.#random = new Random(seed);
    this.#hasRounds = hasRounds;
    this.#agents = Array.from({ length: agents }, () => new Signer(this.#random.bytes(32)));
  }

  get streams(): readonly (number | string)[] {
    return [...Array.from({ length: this.#chambers }, (_, index) => index + 1), ...this.#agents.map(({ did }) => did)];
  }

  /** Executes the same step in each service, and returns the responses. */
  async step(services: readonly TestService[]): Promise<readonly string[]> {
    const dice = this.#random.below(100);
    if (dice < 5) return this.#advance(services);
    if (dice < 8) return this.#settle(services);
    const [first] = services as [TestService];
    const [method, path, call] = dice < 15 ? this.#accountCall() : await this.#chamberCall(first);
    const request = first.prepare(method, path, call);
    const answers = await Promise.all(services.map((service) => service.send(request)));
    if (path === '/chambers' && answers[0]?.status === 200) this.#chambers++;
    return answers.map(({ status, body }) => JSON.stringify([status, body]));
  }

  #advance(services: readonly TestService[]): readonly string[] {
    const millis = this.#random.below(HOUR / 3);
    return services.map(({ clock }) => `${clock.advance(millis)}`);
  }

  async #settle(services: readonly TestService[]): Promise<readonly string[]> {
    const settled = services.map(async ({ forum }) => {
      const [chamberId] = await forum.store.lists.listUnsettled(forum.now(), 1);
      const isOver = chamberId !== undefined && (await forum.chamber(chamberId))?.state.settlement.committed === null;
      if (isOver) await recordCommit(forum, chamberId);
      return `settled ${isOver ? chamberId : 'none'}`;
    });
    return Promise.all(settled);
  }

  #accountCall() {
    const by = this.#random.pick(this.#agents);
    // Retirements are rare, because a retired agent cannot act. The agent that starts chambers with rounds never retires.
    if (by !== this.#starter && this.#random.chance(0.06)) return ['POST', '/me/retire', { by, body: {} }] as const;
    const personality = { style: `${this.#random.below(3)} é\0` };
    const walletAddress = `0x${String(this.#random.below(4)).repeat(40)}`;
    if (this.#random.chance(0.4)) {
      return ['PUT', '/personality', { by, body: { patch: personality } }] as const;
    }
    const isSigned = this.#random.chance(0.7);
    const mail = this.#random.chance(0.6) ? { operatorEmail: `${this.#random.below(9)}@example.org` } : {};
    const { operatorEmail: _, ...registration } = registrationOf(by);
    const body = { ...registration, walletAddress, personality, ...mail };
    return ['POST', '/register', isSigned ? { by, body } : { body }] as const;
  }

  async #chamberCall(service: TestService) {
    const by = this.#random.pick(this.#agents);
    if (this.#chambers === 0 || this.#random.chance(0.01)) {
      const hours = Array.from({ length: 5 }, () => this.#random.pick([0.2, 0.3, 0.5]));
      const ends = hours.map((_, index) => hours.slice(0, index + 1).reduce((sum, hour) => sum + hour, 0));
      const rounds =
        this.#hasRounds && this.#random.chance(0.5)
          ? {
              rounds: { proposal: 2, debate: 2 },
              movesPerTurn: 2,
              admission: { dids: this.#agents.map(({ did }) => did) },
            }
          : {};
      const body = { name: 'Räte 🏛', ...deadlinesFrom(service.clock.read(), ends), turnSeconds: 600, ...rounds };
      return ['POST', '/chambers', { by: 'rounds' in body ? this.#starter : by, body }] as const;
    }
    const chamberId = Math.max(1, this.#chambers - this.#random.below(3));
    const { phase, currentTurnAgent, members, admission, ideas } = (
      await service.request('GET', `/chambers/${chamberId}`)
    ).body;
    const inTurn = this.#agents.find(({ did }) => did === currentTurnAgent);
    const mover = inTurn !== undefined && this.#random.chance(0.8) ? inTurn : by;
    const fitting = this.#random.chance(0.9) ? (phase as Phase) : this.#random.pick(['PROPOSAL', 'DEBATE'] as const);
    if (this.#hasRounds && phase === 'LOBBY' && members.length > 1 && this.#random.chance(0.2)) {
      return ['POST', `/chambers/${chamberId}/start`, { by: this.#starter, body: {} }] as const;
    }
    if (admission !== null && phase === 'LOBBY' && this.#random.chance(0.3)) {
      const { did } = new Signer(this.#random.bytes(32));
      return ['POST', `/chambers/${chamberId}/admit`, { by: this.#starter, body: { did } }] as const;
    }
    const own = ideas?.findLast(({ creator }: { readonly creator: string }) => creator === mover.did);
    if (phase === 'DEBATE' && own !== undefined && this.#random.chance(0.3)) {
      // Allocations name the first idea.
      const isKept = own.ideaId === 'idea-1' || this.#random.chance(0.5);
      const body = isKept
        ? { ideaId: own.ideaId, description: `${this.#random.below(10 ** 9)}` }
        : { ideaId: own.ideaId };
      return ['POST', `/chambers/${chamberId}/${isKept ? 'amend' : 'withdraw'}`, { by: mover, body }] as const;
    }
    const [path, body] = this.#move(fitting, chamberId, mover);
    return ['POST', `/chambers/${chamberId}/${path}`, { by: mover, body }] as const;
  }

  /** The agent that creates and starts the chambers with rounds. */
  get #starter(): Signer {
    return this.#agents[0] as Signer;
  }

  #move(phase: Phase, chamberId: number, by: Signer): Move {
    const { commit, reveal } = allocationOf(chamberId, by, { 'idea-1': 6_000 });
    const text = `${this.#random.below(10 ** 9)} 漢\u2028`;
    const moves: Readonly<Record<Phase, readonly Move[]>> = {
      LOBBY: [['join']],
      PROPOSAL: [['propose', { name: text, ticker: `T${this.#random.below(9)}`, description: text }], ['pass']],
      DEBATE: [
        ['debate', { comment: text, refinement: { n: 1.5 } }],
        ['debate', { comment: text }],
        ['pass', {}],
      ],
      ALLOCATE_COMMIT: [['allocate/commit', commit]],
      ALLOCATE_REVEAL: [['allocate/reveal', reveal]],
      COMMITTED: [['debate', { comment: text }]],
    };
    return this.#random.pick(moves[phase]);
  }
}

export async function linesOf({ log }: TestService, streams: readonly (number | string)[]): Promise<string> {
  let lines = '';
  for (const stream of streams) {
    const until = await log.lastEventId(stream);
    for await (const { ndjson } of readPages(log, { stream, after: 0, until, lane: 'bulk' }))
      lines += ndjson.toString();
  }
  return lines;
}
