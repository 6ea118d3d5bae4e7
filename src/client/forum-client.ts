// Reads of a service, for which nobody needs a key. Proofs are checked before they are handed on.

import type { AllocationsView, ChamberItemView, ChamberView, IdeaView } from '../../projections/views.ts';
import { verifyConsistency, verifyInclusion } from '../crypto/merkle-proof.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { fromHex } from '../vocabulary/hex.ts';
import { ClientError } from './error.ts';
import { exchange, type Fetch, type Service } from './exchange.ts';
import { type FollowOptions, history, lines, type VerifiedLine } from './lines.ts';
import type { CallOptions, ChamberQuery, ConsistencyProof, Health, InclusionProof, MerklePreview } from './requests.ts';
import { ServiceClock } from './service-clock.ts';
import { type PhaseChange, watch } from './turns.ts';

export interface ForumClientOptions {
  /** How long a read, or a move that was certainly not accepted, is tried while the service is away; 60 s without it. */
  readonly patienceMillis?: number;
  /** In place of the global fetch. */
  readonly fetch?: Fetch;
}

const PATIENCE_MILLIS = 60_000;

export class ForumClient {
  readonly service: Service;

  /** `baseUrl` is what the service calls PUBLIC_URL: signatures cover it. */
  constructor(baseUrl: string, options: ForumClientOptions = {}) {
    this.service = {
      baseUrl: checkedUrl(baseUrl),
      clock: new ServiceClock(),
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      patienceMillis: options.patienceMillis ?? PATIENCE_MILLIS,
    };
  }

  info(options?: CallOptions): Promise<{ readonly name: string; readonly version: string }> {
    return this.#get('/', options);
  }

  health(options?: CallOptions): Promise<Health> {
    return this.#get('/health', options);
  }

  /** Newest first. */
  chambers(query: ChamberQuery = {}, options?: CallOptions): Promise<readonly ChamberItemView[]> {
    return this.#get(`/chambers${toQuery({ ...query })}`, options);
  }

  chamber(chamberId: number, options?: CallOptions): Promise<ChamberView> {
    return this.#get(`/chambers/${chamberId}`, options);
  }

  /** Ideas with a token, newest graduation first. */
  ideas(query: { readonly limit?: number } = {}, options?: CallOptions): Promise<readonly IdeaView[]> {
    return this.#get(`/ideas${toQuery({ ...query })}`, options);
  }

  /** The idea of that ticker in any case: one with a token before others, then the newest. */
  idea(ticker: string, query: { readonly chamberId?: number } = {}, options?: CallOptions): Promise<IdeaView> {
    return this.#get(`/ideas/${encodeURIComponent(ticker)}${toQuery({ ...query })}`, options);
  }

  chamberIdeas(chamberId: number, options?: CallOptions): Promise<readonly IdeaView[]> {
    return this.#get(`/chambers/${chamberId}/ideas`, options);
  }

  /** Who committed; from ALLOCATE_REVEAL on also what was revealed, and the tally. */
  allocations(chamberId: number, options?: CallOptions): Promise<AllocationsView> {
    return this.#get(`/chambers/${chamberId}/allocations`, options);
  }

  merklePreview(chamberId: number, options?: CallOptions): Promise<MerklePreview> {
    return this.#get(`/chambers/${chamberId}/merkle-preview`, options);
  }

  /** That an event is in the chamber's tree; throws CLIENT_ERR_PROOF where the proof does not show it. */
  async inclusionProof(chamberId: number, eventId: number, options?: CallOptions): Promise<InclusionProof> {
    const answer = await this.#get<InclusionProof>(`/chambers/${chamberId}/events/${eventId}/proof`, options);
    const isProven = holds(() =>
      verifyInclusion({
        leaf: fromHex(answer.leaf),
        eventId,
        size: answer.eventCount,
        proof: answer.proof.map(fromHex),
        root: fromHex(answer.root),
      }),
    );
    if (!isProven) throw new ClientError('CLIENT_ERR_PROOF', `the proof of event ${eventId} does not lead to its root`);
    return answer;
  }

  /** That the tree of `to` events continues the tree of `from`; throws CLIENT_ERR_PROOF where the proof does not show it. */
  async consistency(
    chamberId: number,
    sizes: { readonly from: number; readonly to: number },
    options?: CallOptions,
  ): Promise<ConsistencyProof> {
    const answer = await this.#get<ConsistencyProof>(`/chambers/${chamberId}/consistency${toQuery(sizes)}`, options);
    const isProven = holds(() =>
      verifyConsistency({
        ...sizes,
        fromRoot: fromHex(answer.fromRoot),
        toRoot: fromHex(answer.toRoot),
        proof: answer.proof.map(fromHex),
      }),
    );
    const claim = `the tree of ${sizes.to} events continues that of ${sizes.from}`;
    if (!isProven) throw new ClientError('CLIENT_ERR_PROOF', `the proof does not show that ${claim}`);
    return answer;
  }

  /** Every event after `after`, from the first without it, then live ones, each once; see lines. */
  async *events(chamberId: number, options: FollowOptions = {}): AsyncGenerator<ChamberEvent, void, undefined> {
    for await (const { event } of this.lines(chamberId, options)) yield event;
  }

  /** The same as the log's lines: what is stored and hashed, with each line's leaf. */
  lines(chamberId: number, options: FollowOptions = {}): AsyncGenerator<VerifiedLine, void, undefined> {
    return lines(this.service, chamberId, options);
  }

  /** The lines that there are now, ending at the log's head. */
  history(
    chamberId: number,
    options: Omit<FollowOptions, 'cursorStore'> = {},
  ): AsyncGenerator<VerifiedLine, void, undefined> {
    return history(this.service, chamberId, options);
  }

  /** The phase the chamber is in, then each that it enters; ends with COMMITTED. */
  watch(chamberId: number, options: CallOptions = {}): AsyncGenerator<PhaseChange, void, undefined> {
    return watch(this.service, chamberId, options);
  }

  async #get<Answer>(path: string, options: CallOptions = {}): Promise<Answer> {
    return (await exchange(this.service, { method: 'GET', path }, options.signal)) as Answer;
  }
}

/** What is not even in a proof's form proves nothing. */
function holds(verify: () => boolean): boolean {
  try {
    return verify();
  } catch {
    return false;
  }
}

function checkedUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') {
    if (url.search === '' && url.hash === '') return url.href.replace(/\/+$/, '');
  }
  throw new ClientError('CLIENT_ERR_INPUT', `the base URL must be like http://127.0.0.1:8787, not ${baseUrl}`);
}

function toQuery(members: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) query.set(name, `${value}`);
  return query.size === 0 ? '' : `?${query}`;
}
