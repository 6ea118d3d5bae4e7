// An agent: a key, a service, and the moves of the specification, each signed and made exactly once.
import type { AccountView } from '../../projections/views.ts';
import type { Allocation, Hex, Personality, Phase } from '../vocabulary/values.ts';
import { type CommitmentStore, checkAllocations, draftCommitment, memoryStore } from './commitments.ts';
import { ClientError } from './error.ts';
import { type Call, exchange } from './exchange.ts';
import { ForumClient } from './forum-client.ts';
import { folderStore, seedFromFile } from './node-files.ts';
import type { CallOptions, DebateMove, NewChamber, NewIdea, Registered, Registration } from './requests.ts';
import { randomSeed, type Signer, toSigner } from './signing.ts';
import { type Turn, turns } from './turns.ts';

export interface AgentOptions {
  /** Keeps what reveal() needs. Without it an agent from a key file keeps it beside the file, any other in memory. */
  readonly store?: CommitmentStore;
}

type MovePath = 'join' | 'propose' | 'debate' | 'pass' | 'allocate/commit' | 'allocate/reveal';

export class Agent {
  /** Reads of the same service, without a key. */
  readonly forum: ForumClient;
  readonly #signer: Signer;
  readonly #store: CommitmentStore;

  private constructor(forum: ForumClient, signer: Signer, store: CommitmentStore) {
    this.forum = forum;
    this.#signer = signer;
    this.#store = store;
  }

  /** An agent with a new key, which is gone with the process. */
  static generate(service: string | ForumClient, options: AgentOptions = {}): Agent {
    return Agent.fromSeed(service, randomSeed(), options);
  }

  /** `seed` is the 32-byte Ed25519 seed of RFC 8032, as bytes or as 0x and 64 hex digits. */
  static fromSeed(service: string | ForumClient, seed: Uint8Array | Hex, options: AgentOptions = {}): Agent {
    return new Agent(toForum(service), toSigner(seed), options.store ?? memoryStore());
  }

  /** The agent of a key file, which is made (mode 0600) where there is none. Node only. */
  static async fromKeyFile(service: string | ForumClient, path: string, options: AgentOptions = {}): Promise<Agent> {
    const signer = toSigner(await seedFromFile(path));
    return new Agent(toForum(service), signer, options.store ?? folderStore(`${path}.commitments`));
  }

  get did(): string {
    return this.#signer.did;
  }

  /** Repeating it with the same content changes nothing; other content replaces the binding, since it is signed. */
  register(registration: Registration, options?: CallOptions): Promise<Registered> {
    const { walletAddress, operatorEmail, personality = {} } = registration;
    const body = { pubkeyHex: this.#signer.pubkeyHex, walletAddress, operatorEmail, personality };
    return this.#call('POST', '/register', body, options);
  }

  me(options: CallOptions = {}): Promise<AccountView> {
    const call = { method: 'GET', path: '/me', signer: this.#signer } as const;
    return exchange(this.forum.service, call, options.signal) as Promise<AccountView>;
  }

  /** Keys of the patch replace those of the present personality; the answer is the whole. */
  changePersonality(patch: Personality, options?: CallOptions): Promise<{ readonly personality: Personality }> {
    return this.#call('PUT', '/personality', { patch }, options);
  }

  createChamber(
    chamber: NewChamber,
    options?: CallOptions,
  ): Promise<{ readonly chamberId: number; readonly phase: Phase }> {
    return this.#call('POST', '/chambers', chamber, options);
  }

  joinChamber(chamberId: number, options?: CallOptions): Promise<{ readonly ok: boolean; readonly turnOrder: number }> {
    return this.#move(chamberId, 'join', {}, options);
  }

  propose(
    chamberId: number,
    idea: NewIdea,
    options?: CallOptions,
  ): Promise<{ readonly ideaId: string; readonly ticker: string }> {
    return this.#move(chamberId, 'propose', idea, options);
  }

  debate(chamberId: number, move: DebateMove, options?: CallOptions): Promise<{ readonly eventId: number }> {
    return this.#move(chamberId, 'debate', move, options);
  }

  pass(
    chamberId: number,
    options?: CallOptions,
  ): Promise<{ readonly eventId: number; readonly nextTurnAgent: string }> {
    return this.#move(chamberId, 'pass', {}, options);
  }

  /**
   * Commits to the allocations under a new salt, which is in the store before anything is sent. They are checked first:
   * a commitment to what cannot be revealed would be accepted.
   */
  async commit(
    chamberId: number,
    allocations: readonly Allocation[],
    options: CallOptions = {},
  ): Promise<{ readonly ok: boolean }> {
    const { ideas } = await this.forum.chamber(chamberId, options);
    checkAllocations(allocations, new Set(ideas.map((idea) => idea.ideaId)));
    const commitment = await draftCommitment(this.#store, { chamberId, did: this.did, allocations });
    return this.#move(chamberId, 'allocate/commit', { commitment }, options);
  }

  /** Reveals what this agent committed to in the chamber: the commitment that the service holds, whichever it was. */
  async reveal(
    chamberId: number,
    options: CallOptions = {},
  ): Promise<{ readonly ok: boolean; readonly verified: boolean }> {
    const { committed } = await this.forum.allocations(chamberId, options);
    const inForce = committed.find(({ did }) => did === this.did);
    if (inForce === undefined) throw unrevealable(`this agent has committed to nothing in chamber ${chamberId}`);
    const opening = await this.#store.find(inForce.commitment);
    if (opening === undefined) throw unrevealable(`the salt of ${inForce.commitment} is not in this agent's store`);
    return this.#move(chamberId, 'allocate/reveal', { allocations: opening.allocations, salt: opening.salt }, options);
  }

  /** Each turn of this agent in PROPOSAL and DEBATE, with the chamber as it is then; ends when these phases are over. */
  turns(chamberId: number, options: CallOptions = {}): AsyncGenerator<Turn, void, undefined> {
    return turns(this.forum.service, chamberId, this.did, options);
  }

  #move<Answer>(chamberId: number, path: MovePath, body: object, options?: CallOptions): Promise<Answer> {
    return this.#call('POST', `/chambers/${chamberId}/${path}`, body, options);
  }

  async #call<Answer>(method: Call['method'], path: string, body: object, options: CallOptions = {}): Promise<Answer> {
    const call = { method, path, body, signer: this.#signer };
    return (await exchange(this.forum.service, call, options.signal)) as Answer;
  }
}

function toForum(service: string | ForumClient): ForumClient {
  return typeof service === 'string' ? new ForumClient(service) : service;
}

function unrevealable(detail: string): ClientError {
  return new ClientError('CLIENT_ERR_COMMITMENT', detail);
}
