// Writes to the file in a separate thread, so that only writes wait for the disk. Transactions run one after another, in request order.
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ForumError } from '../../vocabulary/errors.ts';
import type { DatabaseFile } from './database-file.ts';
import { cannotBeWritten, type Failures } from './failures.ts';
import { pack, type Statement, StatementTexts } from './packed.ts';
import {
  type EraseRequest,
  responseTo,
  Transactions,
  type WriteFailure,
  type WriteRequest,
  type WriteResponse,
} from './transactions.ts';

/** The thread's file has the same extension as this one, both in the sources and in the build. */
const THREAD = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url);

/** A statement changed too few rows or violated a unique key: the caller's view of the log is outdated, and nothing was written. */
export class Conflict extends Error {}

interface Backend {
  run(request: WriteRequest | EraseRequest): Promise<WriteResponse>;
  close(): Promise<void>;
}

type WriteOptions = Pick<WriteRequest, 'withheldThrough' | 'withheld'>;

export class Writer {
  /** The error of the latest `write`; undefined if that succeeded. */
  failure: ForumError | undefined;
  readonly #failures: Failures;
  readonly #backend: Backend;
  readonly #texts = new StatementTexts();

  constructor({ db, location }: DatabaseFile, failures: Failures) {
    this.#failures = failures;
    this.#backend =
      location === undefined ? inThisThread(db) : new WriterThread(location, (reason) => failures.corrupt(reason));
  }

  /** Writes durably, all or nothing. Returns the number of rows that each statement changed. Throws Conflict, among other errors. */
  async write(statements: readonly Statement[], options: WriteOptions = {}): Promise<Uint32Array> {
    try {
      const changes = await this.change(statements, options);
      this.failure = undefined;
      return changes;
    } catch (error) {
      if (!(error instanceof Conflict)) this.failure = error instanceof ForumError ? error : cannotBeWritten(error);
      throw error;
    }
  }

  /** Does the same for data that is not part of a move. Does not change `failure`. */
  async change(statements: readonly Statement[], options: WriteOptions = {}): Promise<Uint32Array> {
    const packed = pack(statements, this.#texts);
    const response = await this.#backend.run({ texts: this.#texts.takeUnsent(), statements: packed, ...options });
    return this.#changesOf(response);
  }

  /** Queues behind earlier writes and blocks later ones. Returns whether the request succeeded. */
  async erase(request: EraseRequest): Promise<boolean> {
    return this.#changesOf(await this.#backend.run(request))[0] === 1;
  }

  #changesOf(response: WriteResponse): Uint32Array {
    if ('changes' in response) return response.changes;
    throw isConflict(response.failure)
      ? new Conflict(response.failure.message)
      : this.#failures.ofWrite(response.failure);
  }

  close(): Promise<void> {
    return this.#backend.close();
  }
}

function isConflict({ kind, code }: WriteFailure): boolean {
  return kind === 'unchanged' || /^SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY|TRIGGER)$/.test(code);
}

function inThisThread(db: DatabaseFile['db']): Backend {
  const transactions = new Transactions(db);
  return {
    run: async (request) => responseTo(request, transactions),
    close: async () => {},
  };
}

/** If the thread dies, a write in progress may or may not have been committed, so the process must stop. */
class WriterThread implements Backend {
  readonly #worker: Worker;
  readonly #waiting: ((response: WriteResponse) => void)[] = [];
  readonly #ended: Promise<void>;
  #reason = 'the thread that writes the log has ended';
  #isClosing = false;
  #hasEnded = false;

  constructor(location: DatabaseFile['location'], onLost: (reason: string) => void) {
    this.#worker = new Worker(THREAD, { workerData: location, execArgv: [], name: 'writer' });
    this.#worker.on('message', (response: WriteResponse) => this.#respond(response));
    this.#worker.on('error', (error) => {
      this.#reason = `the thread that writes the log has failed: ${error}`;
    });
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#hasEnded = true;
        if (!this.#isClosing) onLost(this.#reason);
        for (const respond of this.#waiting.splice(0)) respond(this.#lost());
        resolve();
      });
    });
    this.#keepAlive();
  }

  /** Keeps the process alive only during a write or while the thread is closing. */
  #keepAlive(): void {
    if (this.#waiting.length > 0 || this.#isClosing) this.#worker.ref();
    else this.#worker.unref();
  }

  #respond(response: WriteResponse): void {
    this.#waiting.shift()?.(response);
    this.#keepAlive();
  }

  #lost(): WriteResponse {
    const kind = this.#isClosing ? 'other' : 'corruption';
    return { failure: { kind, code: '', message: this.#reason, isRolledBack: false } };
  }

  run(request: WriteRequest | EraseRequest): Promise<WriteResponse> {
    if (this.#hasEnded || this.#isClosing) return Promise.resolve(this.#lost());
    const { promise, resolve } = Promise.withResolvers<WriteResponse>();
    this.#waiting.push(resolve);
    this.#keepAlive();
    this.#worker.postMessage(request, typeof request === 'string' ? [] : [request.statements]);
    return promise;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#worker.ref();
    this.#worker.postMessage('close');
    await this.#ended;
  }
}
