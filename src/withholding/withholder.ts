// Withholds the texts of the events on the operator's list, and of the lines that repeat these texts. The list and the log determine all
// work, so the next process finishes the work of a crashed one, and several nodes may do the same work: the first stub of an event is
// final. Entries that can't be applied are reported once and change nothing.
import type { Logger } from 'pino';
import { isSettled } from '../../projections/listings.ts';
import { withhold } from '../crypto/stub.ts';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import { WatchedFiles } from '../files/list-file.ts';
import type { Forum } from '../forum/forum.ts';
import { signWith } from '../keys/private-key.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import { StreamDamaged } from '../log/damage.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { StubLine } from '../log/withholding.ts';
import { detach } from '../process/detach.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { fromLine } from '../vocabulary/events.ts';
import {
  type AccountCarriers,
  accountCarriers,
  type Carrier,
  deploymentCarriers,
  type EarlierLine,
  readLine,
} from './carriers.ts';
import { type ListEntry, nameOf, readWithholdList, type WithholdList } from './list.ts';

/** The pause before an unfinished withholding is retried. */
const RETRY_MS = 5_000;
/** Small, because PostgreSQL's appends wait for the transaction of a call. */
const STUBS_PER_CALL = 200;
const STUBS_PER_PAGE = 1_000;
const NO_OTHERS: AccountCarriers = { carriers: [], earlier: [] };

export interface WithholderOptions {
  /** WITHHOLD_FILE */
  readonly path: string | undefined;
  readonly forum: Pick<Forum, 'store' | 'now' | 'chamber' | 'follow'>;
  readonly keys: Pick<ServiceKeys, 'current'>;
  readonly logger: Logger;
}

export interface WithholderState {
  /** The number of withheld lines in the whole log. */
  readonly withheld: number;
  /** The number of lines of the list that can't be applied. */
  readonly failedEntries: number;
  readonly isListRead: boolean;
  /** Why a withholding is not finished; undefined if all are. */
  readonly problem: string | undefined;
}

export class Withholder {
  readonly #options: WithholderOptions;
  readonly #files: WatchedFiles;
  readonly #problems = new RepeatedLog();
  /** The entries whose problems were logged. */
  #reported = new Set<string>();
  /** The entries found so far in this round that can't be applied. */
  #failing = new Set<string>();
  /** Events of the list whose stubs are written. */
  readonly #done = new Set<string>();
  /** Chambers with a withheld text of an idea, until no further line can repeat it; each with the function that ends following it. */
  readonly #open = new Map<number, () => void>();
  /** Accounts with a withheld registration whose joins have not been searched since. */
  readonly #accounts = new Set<string>();
  #list: WithholdList = { entries: [], badLines: [] };
  #failed = 0;
  /** The number of stubs examined so far. */
  #seen = 0;
  #problem: string | undefined;
  #isDue = false;
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();
  #isRunning = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: WithholderOptions) {
    const { path, logger } = options;
    this.#options = options;
    const onProblem = ({ message: reason }: Error, { isForced }: { readonly isForced: boolean }) => {
      const report = (repeats: object) =>
        logger.error(
          { reason, ...repeats },
          'alert raised: list of texts to withhold not read: nothing new is withheld',
        );
      if (isForced) report({});
      else this.#problems.report('list', reason, report);
    };
    this.#files = new WatchedFiles({
      paths: [path],
      read: () => {
        if (path !== undefined) this.#list = readWithholdList(path);
      },
      onRead: () => {
        if (path === undefined) return;
        const { entries, badLines } = this.#list;
        logger.info({ entries: entries.length, badLines: badLines.length }, 'list of texts to withhold read');
        this.#wake();
      },
      onChecked: () =>
        this.#problems.end('list', () => logger.info({}, 'alert cleared: list of texts to withhold read again')),
      onProblem,
    });
  }

  start(): void {
    const { store } = this.#options.forum;
    store.withholding.onWithheld(() => this.#wake());
    this.#files.start({ mayBeLater: true });
    this.#wake();
  }

  reload(): void {
    this.#files.reload({ isForced: true });
  }

  state(): WithholderState {
    const { withholding } = this.#options.forum.store;
    return {
      withheld: withholding.through,
      failedEntries: this.#failed,
      isListRead: this.#files.isRead,
      problem: this.#problem ?? withholding.erasure.problem,
    };
  }

  /** Resolves when the current withholding is written. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#files.close();
    clearTimeout(this.#retry);
    for (const unfollow of this.#open.values()) unfollow();
    await this.#running;
  }

  #wake(): void {
    this.#isDue = true;
    if (this.#isRunning || this.#isStopped) return;
    this.#isRunning = true;
    this.#running = this.#work().finally(() => {
      this.#isRunning = false;
      if (this.#isDue) this.#wake();
    });
    detach(this.#running);
  }

  async #work(): Promise<void> {
    const { logger } = this.#options;
    clearTimeout(this.#retry);
    let failure: Error | undefined;
    while (this.#isDue && !this.#isStopped && failure === undefined) {
      this.#isDue = false;
      failure = await this.#round();
    }
    // The log may already be closed; the next start finishes the work.
    if (this.#isStopped) return;
    this.#problem = failure?.message;
    if (failure === undefined) {
      this.#problems.end('work', () => logger.info({}, 'alert cleared: every withholding is finished'));
      return;
    }
    const { message: reason } = failure;
    // A temporarily unwritable log has its own alert.
    const level = failure instanceof ForumError ? 'warn' : 'error';
    this.#problems.report('work', reason, (repeats) =>
      logger[level]({ reason, ...repeats }, 'alert raised: a withholding is not finished, and is tried again'),
    );
    this.#retry = setTimeout(() => this.#wake(), RETRY_MS).unref();
  }

  /** Returns the first error. An error in one stream does not delay the others. */
  async #round(): Promise<Error | undefined> {
    const failures: Error[] = [];
    const attempt = async (step: () => Promise<void>) => {
      try {
        await step();
      } catch (error) {
        failures.push(error as Error);
      }
    };
    this.#failing = new Set();
    for (const step of this.#entrySteps()) await attempt(step);
    if (failures.length === 0 && !this.#isStopped) this.#endReports();
    await attempt(() => this.#examineStubs());
    for (const step of this.#carrierSteps()) await attempt(step);
    return failures[0];
  }

  /** Call after a round that examined every entry. */
  #endReports(): void {
    if (this.#reported.size > 0 && this.#failing.size === 0)
      this.#options.logger.info({}, 'alert cleared: every entry of the list of texts to withhold is applied');
    this.#reported = this.#failing;
  }

  *#entrySteps(): Generator<() => Promise<void>> {
    const { badLines, entries } = this.#list;
    let failed = badLines.length;
    for (const { line, problem } of badLines) this.#reportEntry(line, problem);
    const due = entries.filter((entry) => !this.#done.has(nameOf(entry)));
    for (const streamEntries of Map.groupBy(due, ({ stream }) => stream).values()) {
      for (let at = 0; at < streamEntries.length && !this.#isStopped; at += STUBS_PER_CALL) {
        yield async () => {
          failed += await this.#applyEntries(streamEntries.slice(at, at + STUBS_PER_CALL));
        };
      }
    }
    this.#failed = failed;
  }

  /** Applies entries of one stream. Resolves to the number of entries that can't be applied. */
  async #applyEntries(entries: readonly ListEntry[]): Promise<number> {
    const { store } = this.#options.forum;
    const carriers: Carrier[] = [];
    let failed = 0;
    for (const entry of entries) {
      const found = await this.#lineOf(entry);
      if (found === undefined) this.#done.add(nameOf(entry));
      else if ('problem' in found) {
        failed++;
        this.#reportEntry(entry.line, `${nameOf(entry)}: ${found.problem}`);
      } else carriers.push(found);
    }
    const [stream] = carriers.map((carrier) => carrier.stream);
    const named = new Map(carriers.map(({ eventId, reason }) => [eventId, reason]));
    const others = typeof stream === 'string' ? await accountCarriers(store, stream, named) : NO_OTHERS;
    // The other lines come first, because they can't be found again without the text of the named lines.
    await this.#withhold([...others.carriers, ...carriers]);
    if (stream !== undefined) this.#reportEarlier(stream, others.earlier);
    for (const carrier of carriers) this.#done.add(nameOf(carrier));
    return failed;
  }

  /** Resolves to the line of an entry; undefined if it is already withheld. */
  async #lineOf(entry: ListEntry): Promise<Carrier | { readonly problem: string } | undefined> {
    const { store } = this.#options.forum;
    const read = await readLine(store, entry).catch((error: unknown) => {
      if (error instanceof StreamDamaged) return error;
      throw error;
    });
    if (read === undefined) return { problem: 'event not found' };
    if (read instanceof Error) return { problem: read.message };
    const { event, line } = read;
    if (event.withheld !== undefined) return undefined;
    // Its text belongs to an idea, and is withheld together with the idea's.
    if (event.type === 'relay.deploy_submitted')
      return { problem: 'a deployment is withheld with the text of its idea' };
    const stub = this.#stubOf({ ...entry, line });
    if (stub === undefined) return { problem: `a line of type ${event.type} without a text that can be withheld` };
    return { ...entry, line };
  }

  /** Reports earlier lines with the same text. Called only once per named line, which is withheld by then. */
  #reportEarlier(stream: StreamId, earlier: readonly EarlierLine[]): void {
    const listed = new Set(this.#list.entries.map(nameOf));
    for (const { eventId, named } of earlier) {
      const event = nameOf({ stream, eventId });
      if (listed.has(event)) continue;
      this.#options.logger.warn(
        { event, withheld: nameOf({ stream, eventId: named }) },
        'an earlier line has the same text as one that is withheld: name the earlier line too',
      );
    }
  }

  #reportEntry(line: number, problem: string): void {
    const { logger, path } = this.#options;
    const name = `${line} ${problem}`;
    this.#failing.add(name);
    if (this.#reported.has(name)) return;
    this.#reported.add(name);
    logger.error(
      { file: path, line, reason: problem },
      'alert raised: an entry in the list of texts to withhold was not applied',
    );
  }

  /** Finds the accounts and chambers whose other lines may repeat the withheld texts. */
  async #examineStubs(): Promise<void> {
    const { forum } = this.#options;
    const { store } = forum;
    for (;;) {
      const page = await store.withholding.read(this.#seen, STUBS_PER_PAGE);
      if (page.count === 0) return;
      for (const line of page.ndjson.toString().trimEnd().split('\n')) {
        const event = fromLine(line);
        if (event.type === 'agent.registered') this.#accounts.add(event.did);
        if (event.type !== 'chamber.proposed' && event.type !== 'chamber.amended') continue;
        const { chamberId } = event;
        if (!this.#open.has(chamberId))
          this.#open.set(
            chamberId,
            forum.follow(chamberId, () => this.#wake()),
          );
      }
      this.#seen = page.last;
    }
  }

  *#carrierSteps(): Generator<() => Promise<void>> {
    const { forum } = this.#options;
    for (const did of this.#accounts) {
      yield async () => {
        await this.#withhold((await accountCarriers(forum.store, did, new Map())).carriers);
        this.#accounts.delete(did);
      };
    }
    for (const [chamberId, unfollow] of this.#open) {
      yield async () => {
        const state = (await forum.chamber(chamberId))?.state;
        if (state === undefined) return;
        await this.#withhold(await deploymentCarriers(forum.store, state));
        if (!isSettled(state)) return;
        unfollow();
        this.#open.delete(chamberId);
      };
    }
  }

  async #withhold(carriers: readonly Carrier[]): Promise<void> {
    const { forum, logger } = this.#options;
    for (let at = 0; at < carriers.length; at += STUBS_PER_CALL) {
      const stubs = carriers.slice(at, at + STUBS_PER_CALL).flatMap((carrier) => this.#stubOf(carrier) ?? []);
      for (const stub of await forum.store.withholding.withhold(stubs)) {
        logger.info({ event: nameOf(stub) }, 'text withheld');
      }
    }
  }

  /** Returns undefined for a line without a text. */
  #stubOf({ stream, eventId, line, reason }: Carrier): StubLine | undefined {
    const { forum, keys } = this.#options;
    const at = forum.now();
    const { publicKey, seed } = keys.current('receipts', at);
    const key = { publicKey, sign: signWith(seed) };
    const made = withhold(line, { at, reason, log: forum.store.log.logId, key });
    return 'stub' in made ? { stream, eventId, line: Buffer.from(made.stub) } : undefined;
  }
}
