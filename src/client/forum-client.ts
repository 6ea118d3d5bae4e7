// Reads from a service, without a key. Verifies proofs before it returns them.
import type { StanceCounts } from '../../projections/ideas.ts';
import type { OutcomeView } from '../../projections/outcome.ts';
import type {
  AgentView,
  AllocationsView,
  ChamberIdeaView,
  ChamberItemView,
  ChamberView,
  IdeaView,
  ListedChamber,
} from '../../projections/views.ts';
import { verifyConsistency, verifyInclusion } from '../crypto/merkle-proof.ts';
import { retirementText } from '../crypto/wallet-texts.ts';
import { READ_LIMITS, type ReadLimits } from '../reading/limits.ts';
import type { Fetch } from '../reading/response.ts';
import type { Shape } from '../reading/shape.ts';
import { backoffMillis } from '../reading/waiting.ts';
import type { AccountEvent, ChamberEvent } from '../vocabulary/events.ts';
import { fromHex, type Hex, instantOf, type Phase, type Stance } from '../vocabulary/values.ts';
import type { WithholdReason } from '../vocabulary/withheld.ts';
import type { CallOptions, Retry, Service } from './call.ts';
import type { Callback } from './callback-types.ts';
import { type CallbackOptions, type CallbackRequest, CallbackVerifier } from './callbacks.ts';
import { changes, type PhaseChange } from './chamber-watcher.ts';
import { DirectoryStubs } from './directory.ts';
import { ClientError } from './error.ts';
import {
  accountHistory,
  allLines,
  type FollowAllOptions,
  type FollowOptions,
  history,
  lines,
  type VerifiedLine,
} from './events.ts';
import { exchange } from './exchange.ts';
import { Heads } from './heads.ts';
import { ideaIdOf } from './ideas.ts';
import {
  ALLOCATIONS,
  ANY_OBJECT,
  CHAMBER,
  CHAMBERS,
  CONSISTENCY_PROOF,
  HEALTH,
  IDEA,
  INCLUSION_PROOF,
  INFO,
  MERKLE_PREVIEW,
  OUTCOME,
} from './shapes.ts';
import { type LocalClock, ServiceClock } from './time.ts';
import { sendSigned, type WalletSigner } from './wallet.ts';
import { Warnings } from './warnings.ts';

export interface ForumClientOptions {
  /**
   * How long a read, or a move that was certainly not accepted, is retried while the service is down. The default is 60 s, but 5 s until
   * the service has responded for the first time, because until then it is most likely not running, or the URL is wrong.
   */
  readonly patienceMillis?: number;
  /** Called before each wait for another attempt. */
  readonly onRetry?: (retry: Retry) => void;
  /** Called once for each problem that does not make a call fail, such as a receipt that can't be stored; console.warn by default. */
  readonly onWarning?: (warning: string) => void;
  readonly fetch?: Fetch;
  /** Replaces the machine's clock and the waits on it. */
  readonly clock?: LocalClock;
  /** Limits on a response's memory and time; READ_LIMITS by default. */
  readonly limits?: Partial<ReadLimits>;
}

export type ChamberListItem = ChamberItemView & Partial<ListedChamber>;

export interface OutcomeOptions extends CallOptions {
  /** Whether to wait until the chamber is over and its tokens are deployed, however long that takes. */
  readonly wait?: boolean;
}

export interface ChamberQuery {
  readonly phase?: Phase | undefined;
  /** 1–200, 50 by default. */
  readonly limit?: number | undefined;
  /** Only chambers with a smaller id: the next page. */
  readonly before?: number | undefined;
  /** 1 adds `phaseEndsAt`, which in a chamber with rounds may be earlier than the deadline. */
  readonly ends?: 1 | undefined;
}

/** The response of GET /health. */
export interface Health {
  readonly ok: boolean;
  readonly env: string;
  /** The chain on which roots are committed; null without a chain, absent if the service does not report it. */
  readonly chain?: ChainInfo | null;
}

export interface ChainInfo {
  readonly chainId: number;
  readonly registryAddress: Hex;
  readonly factoryAddress: Hex;
  /** Only for a development chain that the service runs itself. */
  readonly rpcUrl?: string;
  readonly relayer?: {
    /** Why the relayer can't send a transaction. */
    readonly reason?: string;
  };
}

export interface MerklePreview {
  readonly root: Hex;
  readonly eventCount: number;
  readonly asOfEventId: number;
}

/** Proves that an event is in the tree of `root`. */
export interface InclusionProof {
  readonly eventId: number;
  readonly leaf: Hex;
  /** Siblings from the leaf up, in the order of OpenZeppelin's MerkleProof.verify. */
  readonly proof: readonly Hex[];
  readonly root: Hex;
  readonly eventCount: number;
}

/** Proves that the tree of fromRoot is a prefix of the tree of toRoot (RFC 9162). */
export interface ConsistencyProof {
  readonly fromRoot: Hex;
  readonly toRoot: Hex;
  readonly proof: readonly Hex[];
}

interface TranscriptQuery {
  readonly after?: number | undefined;
  readonly maxBytes?: number | undefined;
}

/** A part of a chamber's transcript. */
export interface Transcript {
  readonly turns: readonly TranscriptTurn[];
  /** The value of `after` for the next part. */
  readonly next: number;
  /** Whether the next part already exists. */
  readonly more: boolean;
}

export interface TranscriptTurn {
  readonly eventId: number;
  readonly type: ChamberEvent['type'];
  readonly ts: string;
  readonly phase: Phase;
  readonly ideaId: string | null;
  /** A1, A2 … in turn order, or `creator`; null for the service. */
  readonly agent: string | null;
  readonly text: string;
  /** The agent's own texts. */
  readonly words: readonly string[];
  /** The event that a comment replies to, and its stance on the idea; absent from services of earlier releases. */
  readonly replyTo?: number | null;
  readonly stance?: Stance | null;
  /** The current straw poll of a proposal. */
  readonly stances?: StanceCounts | null;
  /** Why the service has withheld the texts; absent from services of earlier releases. */
  readonly withheld?: WithholdReason | null;
  readonly isCut: boolean;
}

const PATIENCE_MILLIS = 60_000;
const FIRST_PATIENCE_MILLIS = 5_000;
const IDEA_ID = /^idea-[1-9]\d*$/;

/** Reads from one service. While the service is down, retries for at most `patienceMillis`. */
export class ForumClient {
  readonly service: Service;
  readonly #callbacks: CallbackVerifier;

  /** `baseUrl` is the service's PUBLIC_URL, which signatures cover. */
  constructor(baseUrl: string, options: ForumClientOptions = {}) {
    const contact = { isMade: false };
    const onWarning = options.onWarning ?? ((warning: string) => console.warn(warning));
    this.service = {
      baseUrl: checkedUrl(baseUrl),
      clock: new ServiceClock(options.clock),
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      patienceMillis: options.patienceMillis ?? PATIENCE_MILLIS,
      firstPatienceMillis: options.patienceMillis ?? FIRST_PATIENCE_MILLIS,
      contact,
      onRetry: options.onRetry ?? (() => {}),
      onWarning,
      warnings: new Warnings(onWarning),
      limits: { ...READ_LIMITS, ...options.limits },
      heads: new Heads(),
      stubs: new DirectoryStubs(contact),
    };
    this.#callbacks = new CallbackVerifier(this.service);
  }

  /**
   * Verifies a request to an agent's callback URL, and returns its body. Throws CLIENT_ERR_CALLBACK unless the service signed it for this
   * URL within the last five minutes. Reads the service's keys once an hour.
   */
  verifyCallback(request: CallbackRequest, options: CallbackOptions): Promise<Callback> {
    return this.#callbacks.verify(request, options);
  }

  info(options?: CallOptions): Promise<{ readonly name: string; readonly version: string }> {
    return this.#get('/', INFO, options);
  }

  health(options?: CallOptions): Promise<Health> {
    return this.#get('/health', HEALTH, options);
  }

  /** Resolves once the service accepts moves; rejects with FORUM_ERR_UNAVAILABLE if it does not within `patienceMillis`. */
  ready(options?: CallOptions): Promise<{ readonly ready: true }> {
    return this.#get('/ready', ANY_OBJECT, options);
  }

  /** Returns the debate and its decisions as Markdown, which ends with the eventId to continue after. */
  transcript(chamberId: number, query: TranscriptQuery = {}, options?: CallOptions): Promise<string> {
    const call = {
      method: 'GET',
      path: `/chambers/${chamberId}/transcript${toQuery({ ...query })}`,
      as: 'text',
    } as const;
    return exchange(this.service, call, options?.signal);
  }

  /** Permanently retires a lost or stolen key, with the signature of any wallet that was ever proven for the key. */
  async retire(did: string, wallet: WalletSigner, options?: CallOptions): Promise<Readonly<{ eventId: number }>> {
    return await sendSigned([wallet, this.service, (about) => retirementText({ did, ...about })], (proof) => {
      const body = { walletAddress: wallet.address, ...proof };
      return exchange(this.service, { method: 'POST', path: `/agents/${did}/retire`, body }, options?.signal);
    });
  }

  /** Returns the transcript event by event, with the agents' own texts separate from the service's. */
  transcriptTurns(chamberId: number, query: TranscriptQuery = {}, options?: CallOptions): Promise<Transcript> {
    const path = `/chambers/${chamberId}/transcript${toQuery({ ...query })}`;
    return exchange(this.service, { method: 'GET', path, accept: 'application/json' }, options?.signal);
  }

  /** Returns an agent's public profile. */
  profile(did: string, options?: CallOptions): Promise<AgentView> {
    return this.#get(`/agents/${did}`, ANY_OBJECT, options);
  }

  /** Lists chambers, newest first. */
  chambers(query: ChamberQuery = {}, options?: CallOptions): Promise<readonly ChamberListItem[]> {
    return this.#get(`/chambers${toQuery({ ...query })}`, CHAMBERS, options);
  }

  async chamber(chamberId: number, options?: CallOptions): Promise<ChamberView> {
    const { clock } = this.service;
    const sentAt = clock.local.now();
    const view = await this.#get<ChamberView>(`/chambers/${chamberId}`, CHAMBER, options);
    const now = instantOf(view.now);
    clock.learn({ earliest: now, latest: now }, { sentAt, receivedAt: clock.local.now() });
    return view;
  }

  /** Lists ideas with a token, newest graduation first. */
  ideas(query: { readonly limit?: number } = {}, options?: CallOptions): Promise<readonly IdeaView[]> {
    return this.#ideas(`/ideas${toQuery({ ...query })}`, options);
  }

  /** Returns the newest idea with this ticker (case-insensitive), preferring ideas with a token. */
  idea(ticker: string, query: { readonly chamberId?: number } = {}, options?: CallOptions): Promise<IdeaView> {
    return this.#get(`/ideas/${encodeURIComponent(ticker)}${toQuery({ ...query })}`, IDEA, options);
  }

  /** Lists a chamber's ideas, in the order of proposal. */
  chamberIdeas(chamberId: number, options?: CallOptions): Promise<readonly ChamberIdeaView[]> {
    return this.#ideas(`/chambers/${chamberId}/ideas`, options);
  }

  /** Returns the id of the idea with this ticker (case-insensitive). Returns an id unchanged, without a request. */
  async ideaId(chamberId: number, named: string, options?: CallOptions): Promise<string> {
    if (IDEA_ID.test(named)) return named;
    return ideaIdOf(await this.chamber(chamberId, options), named, 'PROPOSAL', 'DEBATE');
  }

  /** Returns the commitments and, from ALLOCATE_REVEAL on, the reveals and the tally. */
  allocations(chamberId: number, options?: CallOptions): Promise<AllocationsView> {
    return this.#get(`/chambers/${chamberId}/allocations`, ALLOCATIONS, options);
  }

  /** Returns the chamber's outcome. Until the chamber is over, rejects with FORUM_ERR_CONFLICT, whose detail says what is missing. */
  async outcome(chamberId: number, { wait = false, ...options }: OutcomeOptions = {}): Promise<OutcomeView> {
    const { local } = this.service.clock;
    for (let backoffs = 0; ; ) {
      try {
        return await this.#get<OutcomeView>(`/chambers/${chamberId}/outcome`, OUTCOME, options);
      } catch (error) {
        if (!wait || !(error instanceof ClientError) || error.code !== 'FORUM_ERR_CONFLICT') throw error;
        const requestedMillis = 1_000 * (error.retryAfterSeconds ?? 0);
        // The service sends Retry-After, but a proxy may omit it.
        await local.sleep(backoffMillis(requestedMillis > 0 ? 0 : backoffs++, requestedMillis), options.signal);
      }
    }
  }

  /** Returns the Merkle root over the chamber's moves so far. */
  merklePreview(chamberId: number, options?: CallOptions): Promise<MerklePreview> {
    return this.#get(`/chambers/${chamberId}/merkle-preview`, MERKLE_PREVIEW, options);
  }

  /** Returns the proof that the event is in the chamber's tree; throws CLIENT_ERR_PROOF if the proof does not verify. */
  async inclusionProof(chamberId: number, eventId: number, options?: CallOptions): Promise<InclusionProof> {
    const path = `/chambers/${chamberId}/events/${eventId}/proof`;
    const result = await this.#get<InclusionProof>(path, INCLUSION_PROOF, options);
    requireProof(`the proof of event ${eventId} does not lead to its root`, () => {
      const [leaf, root, proof] = [fromHex(result.leaf), fromHex(result.root), result.proof.map(fromHex)];
      return verifyInclusion({ leaf, eventId, size: result.eventCount, proof, root });
    });
    return result;
  }

  /** Returns the proof that the tree of `to` events extends the tree of `from`; throws CLIENT_ERR_PROOF if the proof does not verify. */
  async consistency(
    chamberId: number,
    sizes: { readonly from: number; readonly to: number },
    options?: CallOptions,
  ): Promise<ConsistencyProof> {
    const path = `/chambers/${chamberId}/consistency${toQuery(sizes)}`;
    const result = await this.#get<ConsistencyProof>(path, CONSISTENCY_PROOF, options);
    const { from, to } = sizes;
    requireProof(`the proof does not show that the tree of ${to} events extends the tree of ${from}`, () => {
      const [fromRoot, toRoot] = [fromHex(result.fromRoot), fromHex(result.toRoot)];
      return verifyConsistency({ from, to, fromRoot, toRoot, proof: result.proof.map(fromHex) });
    });
    return result;
  }

  /** Like lines, but yields only the events. */
  async *events(chamberId: number, options: FollowOptions = {}): AsyncGenerator<ChamberEvent, void, undefined> {
    for await (const { event } of this.lines(chamberId, options)) yield event;
  }

  /** Yields every line after `after` (by default all lines), then live lines, each once, across reconnections. */
  lines(chamberId: number, options: FollowOptions = {}): AsyncGenerator<VerifiedLine, void, undefined> {
    return lines(this.service, chamberId, options);
  }

  /** Like lines, for all chambers, with the cursor to resume after. */
  allLines(options: FollowAllOptions = {}): ReturnType<typeof allLines> {
    return allLines(this.service, options);
  }

  /** Yields the existing lines; ends at the log's head. */
  history(
    chamberId: number,
    options: Omit<FollowOptions, 'cursorStore'> = {},
  ): AsyncGenerator<VerifiedLine, void, undefined> {
    return history(this.service, chamberId, options);
  }

  /** Yields the lines of an agent's account: registrations, changes to the personality, and the retirement. */
  accountHistory(did: string, options: CallOptions = {}): AsyncGenerator<VerifiedLine<AccountEvent>, void, undefined> {
    return accountHistory(this.service, did, options);
  }

  /** Yields the current phase, then each later one; ends with COMMITTED. */
  async *watch(chamberId: number, options: CallOptions = {}): AsyncGenerator<PhaseChange, void, undefined> {
    for await (const { phase, state } of changes(this.service, chamberId, (snapshot) => snapshot.phase, options)) {
      yield { phase, state };
      if (phase === 'COMMITTED') return;
    }
  }

  #get<Result>(path: string, shape: Shape, options?: CallOptions): Promise<Result> {
    return exchange(this.service, { method: 'GET', path, shape }, options?.signal);
  }

  #ideas(path: string, options?: CallOptions): Promise<readonly ChamberIdeaView[]> {
    return exchange(this.service, { method: 'GET', path, as: 'list', shape: IDEA }, options?.signal);
  }
}

function requireProof(problem: string, verify: () => boolean): void {
  try {
    if (verify()) return;
  } catch {
    // A malformed proof does not verify.
  }
  throw new ClientError('CLIENT_ERR_PROOF', problem);
}

function checkedUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url !== undefined && /^https?:[^?#]*$/.test(url.href)) return url.href.replace(/\/+$/, '');
  throw new ClientError('CLIENT_ERR_INPUT', `the base URL must be like http://127.0.0.1:8787, not ${baseUrl}`);
}

export function toQuery(members: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) query.set(name, `${value}`);
  return query.size === 0 ? '' : `?${query}`;
}
