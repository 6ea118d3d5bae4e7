// A store whose in-memory database is shared with other stores. Each request to the database passes through a network, which decides when
// the request and its response arrive, and whether either is lost.

import { HIDDEN_KEY_CHARS } from '../../../src/crypto/http-signature.ts';
import type { NodeRef } from '../../../src/crypto/merkle.ts';
import type { CallbackStore } from '../../../src/log/callbacks.ts';
import { DamagedStreams } from '../../../src/log/damage.ts';
import type { AppendBatch, AppendResult, EventLog, OrderedPage, Page, Snapshot } from '../../../src/log/log.ts';
import type { PublishedTree } from '../../../src/log/published-tree.ts';
import type { ReadModel } from '../../../src/log/read-model.ts';
import { ReadQueue } from '../../../src/log/read-queue.ts';
import type { LogMeta, Store } from '../../../src/log/store.ts';
import type { StreamId } from '../../../src/log/stream-id.ts';
import type { Withholding } from '../../../src/log/withholding.ts';
import { ForumError } from '../../../src/vocabulary/errors.ts';
import type { Millis } from '../../../src/vocabulary/values.ts';
import type { MemoryDatabase } from './memory-database.ts';

export interface StoreRequest {
  readonly name: string;
  readonly isAppend: boolean;
}

export interface Network {
  /** Runs the work on the database at a single moment, and resolves with the result later. Rejects with FORUM_ERR_UNAVAILABLE. */
  exchange<Result>(request: StoreRequest, work: () => Result): Promise<Result>;
}

const AT_ONCE: Network = { exchange: async (_, work) => work() };

interface MemoryStoreOptions {
  readonly network?: Network;
  /** Whether the store guesses that a signature that it has not seen is in the log. */
  readonly guesses?: (signatureKey: string) => boolean;
}

export function openMemoryStore(
  database: MemoryDatabase,
  { network = AT_ONCE, guesses = () => false }: MemoryStoreOptions = {},
): Store {
  return {
    log: new MemoryLog(database, network, guesses),
    lists: {
      ...NOT_READ,
      countOpenChambers: (did, max) =>
        network.exchange({ name: `countOpenChambers ${did}`, isAppend: false }, () =>
          database.countOpenChambers(did, max),
        ),
      operatorEmail: (did) =>
        network.exchange({ name: 'operatorEmail', isAppend: false }, () => database.emails.get(did)),
    },
    tree: NOT_PUBLISHED,
    withholding: NOT_WITHHELD,
    meta: new MemoryMeta(database, network),
    callbacks: NO_CALLBACKS,
    nodes: undefined,
    close: async () => {},
  };
}

const unread = () => Promise.reject(new Error('the simulation has no lists'));

/** Reads that the pipeline never makes. */
const NOT_READ: Omit<ReadModel, 'countOpenChambers' | 'operatorEmail'> = {
  listChambers: unread,
  listGraduatedIdeas: unread,
  findIdea: unread,
  listUnsettled: unread,
  listSettled: unread,
  listMemberships: unread,
  listChambersOf: unread,
  listChambersWithIdea: unread,
  listMembersAt: unread,
  agentRecord: unread,
};

const NO_CALLBACKS: CallbackStore = {
  get: unread,
  put: unread,
  remove: unread,
  record: unread,
  remember: unread,
  forget: unread,
  listMemberships: unread,
  listChambersWithTurns: unread,
  listMembers: unread,
};

/** Operations that the forum never calls. */
const NOT_PUBLISHED: PublishedTree = {
  onOneServer: (work) => work(NOT_PUBLISHED),
  checkpoint: async () => undefined,
  confirm: async () => {},
  readTiles: async (refs) => refs.map(() => undefined),
  readLeaves: async () => new Uint8Array(),
  readEvents: async () => [],
  publish: async () => false,
  replaceNote: async () => false,
};

const NOT_WITHHELD: Withholding = {
  through: 0,
  onWithheld: () => {},
  withhold: unread,
  restate: unread,
  read: unread,
  revisionOf: async () => 0,
  erasure: { isPending: false, problem: undefined },
};

class MemoryLog implements EventLog {
  readonly logId: string;
  readonly damagedStreams = new DamagedStreams();
  readonly readQueue = new ReadQueue();
  readonly #database: MemoryDatabase;
  readonly #network: Network;
  readonly #guesses: (signatureKey: string) => boolean;
  readonly #seen = new Set<string>();

  constructor(database: MemoryDatabase, network: Network, guesses: (signatureKey: string) => boolean) {
    this.logId = database.logId;
    this.#database = database;
    this.#network = network;
    this.#guesses = guesses;
  }

  async append(batch: AppendBatch): Promise<AppendResult> {
    // The batch is copied, because the caller may change its objects while the request is in progress.
    const sent = {
      entries: [...batch.entries],
      registrations: [...(batch.registrations ?? [])],
      heads: new Map(batch.heads),
      signatures: [...(batch.signatures ?? [])],
    };
    const result = await this.#network.exchange({ name: `append ${describe(sent)}`, isAppend: true }, () =>
      this.#database.append(sent),
    );
    for (const { stream, signature } of sent.entries) {
      if (signature !== null && !result.conflicts.has(stream)) this.#seen.add(signature);
    }
    for (const signature of result.found.keys()) this.#seen.add(signature);
    return result;
  }

  mayContain(signatureKey: string): boolean {
    return signatureKey.length === HIDDEN_KEY_CHARS || this.#seen.has(signatureKey) || this.#guesses(signatureKey);
  }

  async find(signatureKeys: readonly string[]): Promise<AppendResult['found']> {
    const asked = {
      entries: [],
      registrations: [],
      heads: new Map<StreamId, number>(),
      signatures: [...signatureKeys],
    };
    const { found } = await this.#read('find', (database) => database.append(asked));
    for (const signature of found.keys()) this.#seen.add(signature);
    return found;
  }

  lastEventId(stream: StreamId): Promise<number> {
    return this.#read(`lastEventId ${stream}`, (database) => database.head(stream));
  }

  readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    return this.#read(`readPage ${stream} ${after}`, (database) => database.readPage(stream, after, limit));
  }

  readAll(after: number, limit: number): Promise<OrderedPage> {
    return this.#read('readAll', (database) => database.readAll(after, limit));
  }

  lastPlace(): Promise<number> {
    return this.#read('lastPlace', (database) => database.lastPlace());
  }

  placeOf(stream: StreamId, eventId: number): Promise<number | undefined> {
    return this.#read('placeOf', (database) => database.placeOf(stream, eventId));
  }

  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return this.#read('readNodes', (database) => database.readNodes(chamberId, refs));
  }

  readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    return this.#read(`readSnapshot ${stream}`, (database) => database.snapshots.get(stream));
  }

  writeSnapshot(stream: StreamId, snapshot: Snapshot): Promise<void> {
    return this.#read(`writeSnapshot ${stream}`, (database) => database.writeSnapshot(stream, snapshot));
  }

  dropSnapshot(stream: StreamId): Promise<void> {
    return this.#read(`dropSnapshot ${stream}`, (database) => void database.snapshots.delete(stream));
  }

  #read<Result>(name: string, work: (database: MemoryDatabase) => Result): Promise<Result> {
    return this.#network.exchange({ name, isAppend: false }, () => work(this.#database));
  }
}

function describe({ entries, heads = new Map(), signatures = [] }: AppendBatch): string {
  const checked = [...heads].map(([stream, head]) => `${stream}@${head}`);
  const lines = entries.map(({ stream, eventId }) => `${stream}:${eventId}`);
  return [...lines, ...checked, `${signatures.length} signatures`].join(' ');
}

class MemoryMeta implements LogMeta {
  readonly writeFailure: ForumError | undefined = undefined;
  readonly #database: MemoryDatabase;
  readonly #network: Network;

  constructor(database: MemoryDatabase, network: Network) {
    this.#database = database;
    this.#network = network;
  }

  get lastAt(): Millis {
    return this.#database.clock;
  }

  recall(name: string): Promise<string | undefined> {
    return this.#network.exchange({ name: 'recall', isAppend: false }, () => this.#database.meta.get(name));
  }

  remember(name: string, value: string): Promise<void> {
    return this.#network.exchange({ name: 'remember', isAppend: false }, () => {
      if (!this.#database.meta.has(name)) this.#database.meta.set(name, value);
    });
  }

  replace(name: string, before: string, value: string): Promise<void> {
    return this.#network.exchange({ name: 'replace', isAppend: false }, () => {
      if (this.#database.meta.get(name) === before) this.#database.meta.set(name, value);
    });
  }

  persistClock(at: Millis): Promise<void> {
    return this.#network.exchange({ name: 'persistClock', isAppend: false }, () => {
      this.#database.clock = Math.max(this.#database.clock, at);
    });
  }
}

/** An error that no store is known to throw. */
export class UnknownStoreError extends Error {
  override readonly name = 'UnknownStoreError';
}

export function unavailable(): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', 'the log cannot be written', { retryAfterSeconds: 1 });
}
