// Audits honest logs, which must be sound: random chambers of a real forum, whose roots and tokens the real relayer submits to a
// chain that delays transactions, raises fees, rejects deployments and reorganizes. HONEST_CHAMBERS=200 plays more chambers,
// HONEST_SEED selects different ones.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { turnHolderAt } from '../../projections/turn.ts';
import { compareAccounts } from '../../src/audit/account/compare-accounts.ts';
import { AuditedChain } from '../../src/audit/chain/chain-reader.ts';
import { compareChain } from '../../src/audit/chain/compare-chain.ts';
import { type DevChain, startDevChain } from '../../src/dev-chain/dev-chain.ts';
import { SOLE_LEASE } from '../../src/log/store.ts';
import { Relayer } from '../../src/relayer/relayer.ts';
import { openRpc, type Rpc } from '../../src/relayer/rpc.ts';
import { relayerForum } from '../../src/service/chain.ts';
import { allocationOf, deadlinesFrom } from '../kit/chambers.ts';
import { Random } from '../kit/random.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';
import { until } from '../kit/until.ts';
import { recordingLogger } from '../relayer/relayer-chain.ts';
import { accountsOf, auditLines, report, toText } from './forge.ts';

/** These checks need a service, receipts, a token rule, or moves that name seen events. */
const NEED_MORE = ['preview', 'views', 'balances', 'seen', 'receipts', 'checkpoint', 'witnesses'];

const { HONEST_CHAMBERS = '12', HONEST_SEED = '1' } = process.env;
const CHAMBERS = Number(HONEST_CHAMBERS);
const AGENTS = 6;
const STEP_MILLIS = 600_000;
const SLOW = 60_000 + CHAMBERS * 3_000;

let chain: DevChain;
let rpc: Rpc;

beforeAll(async () => {
  chain = await startDevChain({ logger: recordingLogger([]) });
  rpc = openRpc(chain.config.rpcUrl, { timeoutMillis: SLOW });
}, 60_000);
afterAll(async () => {
  rpc.close();
  await chain.stop();
});

class World {
  readonly service = new TestService();
  readonly #random: Random;
  readonly #agents: readonly Signer[];

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#agents = Array.from({ length: AGENTS }, () => new Signer(this.#random.bytes(32)));
  }

  /** The factory rejects every third wallet. */
  async register(): Promise<void> {
    for (const [index, by] of this.#agents.entries()) {
      const { operatorEmail: _, ...registration } = registrationOf(by);
      const walletAddress = `0x${(index % 3 === 2 ? '00' : `1${index}`).repeat(20)}`;
      await this.service.must('POST', '/register', { body: { ...registrationOf(by), walletAddress } });
      await this.service.must('POST', '/register', { by, body: { ...registration, walletAddress } });
    }
  }

  async play(): Promise<void> {
    const waiting = Array.from({ length: CHAMBERS }, (_, index) => index + 1);
    for (const chamberId of waiting) await this.#create(chamberId);
    for (let open = waiting; open.length > 0; ) {
      const still: number[] = [];
      for (const chamberId of open) if (await this.#act(chamberId)) still.push(chamberId);
      open = still;
      this.service.clock.advance(STEP_MILLIS + this.#random.below(2_000));
    }
  }

  /** Phases of zero length are skipped. */
  async #create(chamberId: number): Promise<void> {
    const hours = Array.from({ length: 5 }, (_, index) => this.#random.pick([index === 1 ? 1 : 0, 0.5, 1, 1]));
    const ends = hours.map((_, index) => hours.slice(0, index + 1).reduce((sum, hour) => sum + hour, 0.5));
    const turns = this.#random.chance(0.5) ? { turnSeconds: this.#random.pick([60, 900, 1_800]) } : {};
    const body = {
      name: `Chamber ${chamberId}`,
      ...deadlinesFrom(this.service.clock.read(), ends),
      minBackersForGraduation: 1,
      ...turns,
    };
    await this.service.must('POST', '/chambers', { by: this.#random.pick(this.#agents), body });
  }

  /** Makes allowed moves and some that may be rejected; returns false once the chamber has ended. */
  async #act(chamberId: number): Promise<boolean> {
    for (let count = this.#random.below(4); count > 0; count--) {
      const state = (await this.service.forum.chamber(chamberId))?.state;
      const now = this.service.forum.now();
      if (state === undefined || isClosed(state, now)) return false;
      const holder = turnHolderAt(state, now);
      const by = this.#agents.find(({ did }) => did === holder) ?? this.#random.pick(this.#agents);
      const [path, body] = this.#moveOf(phaseAt(state, now), chamberId, by);
      const { status } = await this.service.request('POST', `/chambers/${chamberId}/${path}`, { by, body });
      expect([200, 400, 403, 404, 409]).toContain(status);
      this.service.clock.advance(this.#random.below(5_000));
    }
    const chamber = await this.service.forum.chamber(chamberId);
    return chamber !== undefined && !isClosed(chamber.state, this.service.forum.now());
  }

  #moveOf(phase: string, chamberId: number, by: Signer): readonly [path: string, body?: object] {
    const allocation = allocationOf(chamberId, by, this.#random.chance(0.9) ? { 'idea-1': 6_000 } : {});
    switch (phase) {
      case 'LOBBY':
        return ['join'];
      case 'PROPOSAL': {
        const ticker = this.#random.pick(['SOIL', 'RAIN', 'Q']) + this.#random.below(9);
        return this.#random.chance(0.7) ? ['propose', { name: 'Idea', ticker, description: 'é' }] : ['pass'];
      }
      case 'DEBATE':
        return this.#random.chance(0.7)
          ? ['debate', { comment: 'Hm.', refinement: { n: this.#random.below(9) } }]
          : ['pass'];
      case 'ALLOCATE_COMMIT':
        return ['allocate/commit', allocation.commit];
      default:
        return ['allocate/reveal', allocation.reveal];
    }
  }
}

/** Submits everything to the chain. At first no block is mined, so that the relayer raises fees; then blocks are reorganized away. */
async function relay({ service }: World): Promise<void> {
  const lease = service.store.nodes?.lease('relayer') ?? SOLE_LEASE;
  const forum = relayerForum(service.forum, () => lease);
  let ahead = 0;
  const relayer = new Relayer({
    config: { ...chain.config, feeBumpSeconds: 30, confirmations: 2 },
    forum,
    logger: recordingLogger([]),
    clock: () => performance.now() + ahead,
    rpcTimeoutMillis: 20_000,
  });
  // No block is older than the moves whose root it commits.
  await rpc.request('evm_increaseTime', [Math.ceil((service.clock.read() - Date.now()) / 1000)]);
  await rpc.request('anvil_mine', ['0x5']);
  await rpc.request('evm_setAutomine', [false]);
  relayer.start();
  try {
    await until(async () => {
      ahead += 5_000;
      return (await raisedFees(service)) > 0;
    });
    await rpc.request('evm_setAutomine', [true]);
    await rpc.request('evm_mine', []);
    await rpc.request('anvil_reorg', [1, []]);
    const isSettled = async () => {
      ahead += 5_000;
      await rpc.request('evm_mine', []);
      return (await forum.unsettledChambers(1)).length === 0;
    };
    await until(isSettled, SLOW);
  } finally {
    await relayer.stop();
    await lease.release();
  }
}

/** The number of transactions that replaced one at the same nonce. */
async function raisedFees(service: TestService): Promise<number> {
  const sent = (await eventsOf(service)).filter(({ type }) => type === 'relay.commit_submitted');
  return sent.length - new Set(sent.map(({ payload }) => payload.nonce)).size;
}

interface Event {
  readonly type: string;
  readonly did: string | null;
  readonly payload: { readonly nonce?: number };
}

async function eventsOf(service: TestService): Promise<readonly Event[]> {
  const ids = Array.from({ length: CHAMBERS }, (_, index) => index + 1);
  return (await Promise.all(ids.map((id) => service.lines(id)))).flat().map((line) => JSON.parse(line) as Event);
}

async function countOf(service: TestService, wanted: string): Promise<number> {
  return (await eventsOf(service)).filter(({ type }) => type === wanted).length;
}

test(
  `logs of ${CHAMBERS} random chambers are sound, by lines, accounts and chain (HONEST_SEED=${HONEST_SEED})`,
  async () => {
    const world = new World(Number(HONEST_SEED));
    const { service } = world;
    await world.register();
    await world.play();
    await relay(world);

    expect(await raisedFees(service)).toBeGreaterThan(0);
    expect(await countOf(service, 'chamber.committed')).toBe(CHAMBERS);
    expect(await countOf(service, 'idea.deployed')).toBeGreaterThan(0);
    expect(await countOf(service, 'idea.deploy_failed')).toBeGreaterThan(0);

    const accounts = await accountTexts(service);
    const audited = new AuditedChain(chain.config.rpcUrl, [chain.config.registryAddress]);
    const policy = { factories: [chain.config.factoryAddress] };
    for (let chamberId = 1; chamberId <= CHAMBERS; chamberId++) {
      const text = toText(await service.lines(chamberId));
      expect((await report(text)).sentence, `chamber ${chamberId}`).toBe('Sound.');
      const audit = await auditLines(text, policy);
      await compareChain(audit, audited, chamberId);
      await compareAccounts(audit, await accountsOf(accounts, audit.context));
      const open = audit.findings.results().filter(({ verdict }) => verdict !== 'verified');
      const text2 = open.map(({ name, verdict, note, findings }) => [name, verdict, note, findings[0]?.sentence]);
      expect(
        text2.filter(([name]) => !NEED_MORE.includes(name ?? '')),
        `chamber ${chamberId}`,
      ).toEqual([]);
    }
  },
  SLOW,
);

async function accountTexts(service: TestService): Promise<string> {
  const dids = new Set((await eventsOf(service)).flatMap(({ did }) => did ?? []));
  const pages = [...dids].map((did) => service.log.readPage(did, 0, 100));
  return (await Promise.all(pages)).map(({ ndjson }) => ndjson.toString()).join('');
}
