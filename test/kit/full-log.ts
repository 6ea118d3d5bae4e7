// Writes logs with chambers and accounts as large as the limits allow; they equal the service's, but without signatures.
import { EMPTY_TREE, rootOf } from '../../src/crypto/merkle.ts';
import { type Author, type Chamber, stageAccountEvent, stageChamberEvent } from '../../src/forum/staging.ts';
import type { EventLog, LogEntry } from '../../src/log/log.ts';
import type { MoveFact, ServiceFact, WalletProof } from '../../src/vocabulary/events.ts';
import { REFINEMENT_DEPTH_MAX } from '../../src/vocabulary/schemas.ts';
import {
  DEADLINES,
  type Deadlines,
  type Hex,
  type JsonObject,
  type JsonValue,
  type Millis,
  STANCES,
  type Stance,
  toHex,
  toTimestamp,
} from '../../src/vocabulary/values.ts';

export const MEMBERS = 256;
/** A character of three bytes in UTF-8 and two in memory. */
export const CJK = '議';
export const LONGEST_TEXT = CJK.repeat(8_192);

/** The wallet of every account. */
export const ACCOUNT_WALLET = `0x${'ab'.repeat(20)}`;

const HOUR_MS = 3_600_000;
const TX_HASH = `0x${'22'.repeat(32)}` as const;
const WORDS = Array.from({ length: 50 }, (_, index) => CJK.repeat(100) + index);
export const FAT_PERSONALITY = { loves: WORDS, hates: WORDS, expertise: WORDS, style: CJK.repeat(500) };

export interface FullChamber {
  readonly chamberId: number;
  /** The root over all moves. */
  readonly root: string;
  /** The number of moves, excluding service events. */
  readonly moves: number;
  readonly events: number;
}

interface WrittenAccount {
  readonly did: string;
  readonly pubkeyHex: string;
  readonly walletProof?: WalletProof;
}

interface Filling {
  /** The description of each idea. */
  readonly text: string;
  /** The number of ideas over which every member spreads its whole allocation evenly. */
  readonly backed: number;
  /** Whether the root is on the chain. */
  readonly isCommitted?: boolean;
  /** The number of ideas with tokens, counted from the first. */
  readonly deployed?: number;
  /** The number of versions of each idea; each has `text` and a number. */
  readonly versions?: number;
  /** The number of ideas on which every member takes a stance, counted from the first. */
  readonly polled?: number;
  readonly comments?: { readonly count: number; readonly comment: string; readonly refinement: JsonObject | null };
}

const REFINEMENT_ITEMS = 10_000;

/** Returns a refinement just below the limits of size and depth; its indented form is 26 times as long. */
export function deepRefinement(): JsonObject {
  let value: JsonValue = Array.from({ length: REFINEMENT_ITEMS }, () => [[0]]);
  for (let depth = 4; depth < REFINEMENT_DEPTH_MAX; depth++) value = [value];
  return { value };
}

export class FullLogWriter {
  readonly #log: EventLog;
  /** A time after every deadline of the chambers. */
  readonly #now: Millis;

  constructor(log: EventLog, now: Millis = Date.now() - 12 * HOUR_MS) {
    this.#log = log;
    this.#now = now;
  }

  /** Writes a chamber in which every member has proposed an idea, and committed and revealed an allocation. */
  async writeChamber(
    chamberId: number,
    { text, backed, isCommitted = false, deployed = 0, comments, versions = 1, polled = 0 }: Filling,
  ): Promise<FullChamber> {
    const entries: LogEntry[] = [];
    let chamber: Chamber | undefined;
    const stage = (did: string | null, fact: MoveFact | ServiceFact) => {
      const staged = this.#stage(chamber, chamberId, fact, did);
      chamber = staged.after;
      entries.push(staged.entry);
    };
    const times = DEADLINES.map((name, index) => [name, toTimestamp(this.#now + HOUR_MS * (index + 1))]);
    const created = { name: 'Full', deadlines: Object.fromEntries(times) as Deadlines };
    const dids = Array.from({ length: MEMBERS }, (_, index) => `did:key:z6Mk${chamberId}x${index}`.padEnd(56, 'a'));
    stage(dids[0] as string, {
      type: 'chamber.created',
      payload: { ...created, minBackersForGraduation: 1, turnSeconds: null },
    });
    const bps = 10_000 / backed;
    const allocations = Array.from({ length: backed }, (_, at) => ({ ideaId: `idea-${at + 1}`, bps }));
    for (const [turnOrder, did] of dids.entries()) {
      stage(did, { type: 'chamber.joined', payload: { turnOrder } });
      const slot = turnOrder + 1;
      const named = { ideaId: `idea-${slot}`, slot, name: `Idea ${slot}`, ticker: `T${slot}` };
      const payload = { ...named, description: text, creatorWallet: `0x${'ab'.repeat(20)}` };
      stage(did, { type: 'chamber.proposed', payload });
    }
    for (const [index, did] of dids.entries()) {
      const ideaId = `idea-${index + 1}`;
      for (let version = 2; version <= versions; version++) {
        const description = `${version}${text}`.slice(0, text.length);
        stage(did, { type: 'chamber.amended', payload: { ideaId, version, description } });
      }
    }
    for (let at = 0; at < polled * MEMBERS; at++) {
      const said = { ideaId: `idea-${1 + Math.floor(at / MEMBERS)}`, comment: 'hm', refinement: null };
      const payload = { ...said, stance: STANCES[at % STANCES.length] as Stance, version: versions };
      stage(dids[at % MEMBERS] as string, { type: 'chamber.debated', payload });
    }
    for (const did of dids) {
      stage(did, { type: 'allocation.committed', payload: { commitment: `0x${'cd'.repeat(32)}` } });
      stage(did, { type: 'allocation.revealed', payload: { allocations, salt: `0x${'ef'.repeat(16)}` } });
    }
    for (let at = 0; at < (comments?.count ?? 0); at++) {
      const { comment = '', refinement = null } = comments ?? {};
      const payload = { ideaId: `idea-${1 + (at % MEMBERS)}`, comment, refinement };
      stage(dids[at % MEMBERS] as string, { type: 'chamber.debated', payload });
    }
    const root = toHex(rootOf((chamber as Chamber | undefined)?.tree ?? EMPTY_TREE));
    const moves = entries.length;
    if (isCommitted) {
      const committedAt = toTimestamp(this.#now + 6 * HOUR_MS);
      const payload = { merkleRoot: root, eventCount: moves, txHash: TX_HASH, blockNumber: 1, committedAt };
      stage(null, { type: 'chamber.committed', payload });
    }
    const graduatedAt = toTimestamp(this.#now + 6 * HOUR_MS);
    for (let slot = 1; slot <= deployed; slot++) {
      const payload = { ideaId: `idea-${slot}`, tokenAddress: `0x${'cd'.repeat(20)}`, txHash: TX_HASH, graduatedAt };
      stage(null, { type: 'idea.deployed', payload });
    }
    await this.#log.append({ entries });
    return { chamberId, root, moves, events: entries.length };
  }

  /** Writes a chamber in DEBATE with the agent as its only member, who always has the turn. */
  async writeDebate(chamberId: number, did: string): Promise<void> {
    const ends = [1, 1, 1_000, 1_001, 1_002].map((hours) => toTimestamp(this.#now + HOUR_MS * hours));
    const deadlines = Object.fromEntries(DEADLINES.map((name, index) => [name, ends[index]])) as Deadlines;
    const created = { name: 'Debate', deadlines, minBackersForGraduation: 1, turnSeconds: null };
    const creation = this.#stage(undefined, chamberId, { type: 'chamber.created', payload: created }, did);
    const joining = this.#stage(creation.after, chamberId, { type: 'chamber.joined', payload: { turnOrder: 0 } }, did);
    await this.#log.append({ entries: [creation.entry, joining.entry] });
  }

  /** The `walletProof` is fake, because reading a log does not verify it. */
  async writeAccounts(agents: readonly WrittenAccount[]): Promise<void> {
    const entries = agents.map(({ did, pubkeyHex, walletProof }) => {
      const walletAddress = ACCOUNT_WALLET;
      const payload = {
        agentId: `agent-${did}`,
        pubkeyHex: pubkeyHex as Hex,
        walletAddress,
        personality: FAT_PERSONALITY,
        ...(walletProof && { walletProof }),
      };
      const author = { did, request: null, signature: null };
      return stageAccountEvent(undefined, { type: 'agent.registered', payload }, author, { at: this.#now }).entry;
    });
    await this.#log.append({ entries });
  }

  #stage(before: Chamber | undefined, chamberId: number, fact: MoveFact | ServiceFact, did: string | null) {
    const author: Author = { did, request: null, signature: null };
    return stageChamberEvent(before, chamberId, fact, { author, at: this.#now });
  }
}
