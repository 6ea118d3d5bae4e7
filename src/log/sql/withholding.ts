// Withholding in either database: plans a transaction, and plans it again if the log has changed in the meantime.
//
// Why a withheld text never returns once the transaction is committed:
// 1. The plan's rows follow from the stubs and from every event of the stream. The transaction writes nothing unless the stream still has
//    the planned head and the log the planned number of withholdings. No driver lets an append commit between this check and the commit.
// 2. An append or a snapshot names the last withholding that its states reflect. If the log has a later one, the driver rejects the write.
//    So no node writes a row from a state with the text, however long the write was delayed.
// 3. A state in memory is published only if no withholding was noticed since the state was read or its batch was decided (forum/streams.ts),
//    and a batch is never younger than the states that it uses (forum/batch.ts). So the number in 2 is correct.
// 4. Only another stub with the same facts and leaf can replace a stub (restated-stubs.ts): `withheld` is unique by event, and the
//    append-only trigger rejects any other UPDATE.
import { unavailable } from '../../vocabulary/errors.ts';
import type { DamagedStreams } from '../damage.ts';
import type { EventLog, Page } from '../log.ts';
import { PAGE_BYTES, readPages } from '../pages.ts';
import type { StreamId } from '../stream-id.ts';
import type { Erasure, OnWithheld, RestateStub, StubLine, WithheldPage, Withholding } from '../withholding.ts';
import { findDamage } from './event-log.ts';
import { type RestatedStub, restateStubs } from './restated-stubs.ts';
import { type Sql, toStream } from './sql.ts';
import { lastNumber, linesOf, NUMBERED, type NumberedLine, readOriginals, requireStubOf } from './withheld-lines.ts';
import {
  ROWS_PER_STATEMENT,
  StubbedRows,
  type WithheldLine,
  type WithheldStream,
  type WithholdPlan,
  type WithholdStatement,
} from './withheld-rows.ts';

/** `meta` key of the last withholding whose bytes may still be in the database's files. */
export const ERASURE_PENDING = 'erasure_pending';

/** If a stream grows between a plan and its transaction, the next plan folds only the added events. */
const ATTEMPTS_MAX = 100;

interface Fold {
  readonly rows: StubbedRows;
  head: number;
}

/** Chambers that were folded with their stubs while the log had `after` withholdings. */
class Folds {
  readonly after: number;
  readonly #folds = new Map<StreamId, Fold>();

  constructor(after: number) {
    this.after = after;
  }

  of(stream: StreamId): Fold {
    const fold = this.#folds.get(stream) ?? { rows: new StubbedRows(), head: 0 };
    this.#folds.set(stream, fold);
    return fold;
  }
}

export interface WithholdingParts {
  readonly sql: Sql;
  readonly log: EventLog;
  readonly damagedStreams: DamagedStreams;
  /** The last withholding when the store was opened. */
  readonly through: number;
}

export abstract class SqlWithholding implements Withholding {
  #through: number;
  readonly #parts: WithholdingParts;
  readonly #listeners: OnWithheld[] = [];
  /** Withholdings of this process run one after another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: WithholdingParts) {
    this.#parts = parts;
    this.#through = parts.through;
  }

  abstract get erasure(): Erasure;
  /** Writes all or nothing; returns false if the log has changed since the plan was made. */
  protected abstract write(plan: WithholdPlan): Promise<boolean>;
  /** Writes stubs that replace stubs, with the same guarantees. */
  protected abstract writeRestated(
    stubs: readonly RestatedStub[],
    statements: readonly WithholdStatement[],
  ): Promise<boolean>;

  get through(): number {
    return this.#through;
  }

  onWithheld(listener: OnWithheld): void {
    this.#listeners.push(listener);
  }

  /** Called whenever withholdings are noticed, with the streams of all new ones up to `through`. */
  protected announce(streams: ReadonlySet<StreamId>, through: number): void {
    if (through <= this.#through) return;
    this.#through = through;
    for (const listener of this.#listeners) listener(streams);
  }

  protected announceUnknown(): void {
    for (const listener of this.#listeners) listener(null);
  }

  withhold(stubs: readonly StubLine[]): Promise<readonly StubLine[]> {
    const withheld = this.#last.then(() => this.#withhold(stubs));
    this.#last = withheld.catch(() => {});
    return withheld;
  }

  restate(restateStub: RestateStub): Promise<number> {
    return restateStubs(this.#parts, restateStub, (stubs, statements) => this.writeRestated(stubs, statements));
  }

  async #withhold(stubs: readonly StubLine[]): Promise<readonly StubLine[]> {
    let folds = new Folds(0);
    for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts++) {
      const after = await lastNumber(this.#parts.sql);
      if (folds.after !== after) folds = new Folds(after);
      const plan = { after, streams: await this.#plan(stubs, folds) };
      const lines = plan.streams.flatMap((each) => each.lines);
      if (lines.length === 0) return [];
      if (!(await this.write(plan))) continue;
      this.announce(new Set(plan.streams.map(({ stream }) => stream)), after + lines.length);
      return lines;
    }
    throw unavailable('the streams are growing too fast, retry');
  }

  async #plan(stubs: readonly StubLine[], folds: Folds): Promise<readonly WithheldStream[]> {
    const streams: WithheldStream[] = [];
    for (const [stream, ofStream] of Map.groupBy(stubs, (stub) => stub.stream)) {
      const lines = await this.#newOf(ofStream);
      if (lines.length > 0) streams.push(await this.#planStream(stream, lines, folds.of(stream)));
    }
    return streams;
  }

  /** Returns the first stub of each event that is not withheld yet. */
  async #newOf(stubs: readonly StubLine[]): Promise<readonly WithheldLine[]> {
    const { sql, damagedStreams } = this.#parts;
    const first = [...new Map(stubs.toReversed().map((stub) => [stub.eventId, stub])).values()].reverse();
    const lines: WithheldLine[] = [];
    for (let start = 0; start < first.length; start += ROWS_PER_STATEMENT) {
      const asked = first.slice(start, start + ROWS_PER_STATEMENT);
      const originals = await readOriginals(sql, asked);
      for (const stub of asked) {
        const original = originals.get(stub.eventId);
        if (original === undefined) throw new Error(`event ${stub.eventId} of ${stub.stream} not found`);
        if (original.number !== null) continue;
        const damage = findDamage(damagedStreams, original);
        if (damage !== undefined) throw damage;
        lines.push({ ...stub, signature: requireStubOf(stub, original) });
      }
    }
    return lines;
  }

  async #planStream(stream: StreamId, lines: readonly WithheldLine[], fold: Fold): Promise<WithheldStream> {
    const { log } = this.#parts;
    const head = await log.lastEventId(stream);
    if (typeof stream === 'number') {
      const stubs = new Map(lines.map(({ eventId, line }) => [eventId, Buffer.from(line)]));
      for await (const page of readPages(log, { stream, after: fold.head, until: head, lane: 'bulk' })) {
        for (const line of linesIn(page)) fold.rows.add(stubs.get(++fold.head) ?? line);
      }
    }
    return { stream, head, lines, rows: fold.rows.byTable };
  }

  async read(after: number, limit: number): Promise<WithheldPage> {
    const { sql, damagedStreams } = this.#parts;
    const parts: Buffer[] = [];
    let [last, bytes, left] = [after, 0, limit];
    while (left > 0 && bytes < PAGE_BYTES) {
      const rows = await sql.query<NumberedLine>(NUMBERED, [last, Math.min(left, ROWS_PER_STATEMENT)]);
      const asked = rows.map(({ stream, event_id }) => ({ stream: toStream(stream), eventId: event_id }));
      const lines = new Map((await linesOf(sql, asked)).map((line) => [`${line.stream} ${line.event_id}`, line]));
      for (const { number, stream, event_id: eventId } of rows) {
        const found = lines.get(`${stream} ${eventId}`);
        if (found === undefined) throw damagedStreams.record(toStream(stream), eventId, `event ${eventId} is missing`);
        const damage = findDamage(damagedStreams, found);
        if (damage !== undefined) throw damage;
        parts.push(found.line, LINE_BREAK);
        bytes += found.line.length + 1;
        last = number;
        if (--left === 0 || bytes >= PAGE_BYTES) break;
      }
      if (rows.length < ROWS_PER_STATEMENT) break;
    }
    return { ndjson: Buffer.concat(parts), count: parts.length / 2, last };
  }

  async revisionOf(stream: StreamId): Promise<number> {
    const text = 'SELECT count(*) AS count FROM withheld WHERE stream = $1';
    const [row] = await this.#parts.sql.query<{ readonly count: number }>(text, [String(stream)]);
    return row?.count ?? 0;
  }
}

const LINE_BREAK = Buffer.from('\n');

function* linesIn({ ndjson }: Page): Generator<Buffer> {
  for (let start = 0; start < ndjson.length; ) {
    const end = ndjson.indexOf(LINE_BREAK, start);
    yield ndjson.subarray(start, end);
    start = end + 1;
  }
}
