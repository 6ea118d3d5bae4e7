// Withheld lines against original ones: the cost of reading a chamber of stubs, and of the first request that folds it.
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { withhold } from '../../src/crypto/stub.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { Store } from '../../src/log/store.ts';
import type { StubLine } from '../../src/log/withholding.ts';
import { median } from './figures.ts';
import { storedLog } from './logs/stored-log.ts';
import { type Options, scaled } from './options.ts';
import { withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { about, measureInRounds, rowOf } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { compare } from './verdicts.ts';

const LINES = 20_000;
const CHAMBER = 1;
const READS = 5;
const PAGE = 1_000;

interface Figures {
  /** The time to read the whole chamber, page by page. */
  readonly readMillis: number;
  /** The time of the first view of the chamber. */
  readonly foldMillis: number;
  readonly bytes: number;
}

export async function benchWithheld(options: Options): Promise<Report> {
  const plain = await storedLog({ name: 'withheld', chambers: [scaled(LINES, options)] });
  const { path, stubs } = await withheldCopy(plain);
  const series = await measureInRounds(
    [
      { name: 'withheld lines', measure: () => measure(path) },
      { name: 'lines', measure: () => measure(plain) },
    ],
    options.runs,
  );
  const [read, plainRead] = series.map((each) => rowOf(about('read', each), 'ms', ({ readMillis }) => readMillis));
  const [fold, plainFold] = series.map((each) =>
    rowOf(about('first view', each), 'ms', ({ foldMillis }) => foldMillis),
  );
  const [bytes, plainBytes] = series.map((each) => rowOf(about('read', each), 'bytes', (run) => run.bytes));
  if (!read || !plainRead || !fold || !plainFold || !bytes || !plainBytes)
    throw new Error('reads of two logs must be measured');
  return {
    bench: `withheld (${stubs} of ${scaled(LINES, options)} lines withheld, medians of ${READS} reads)`,
    rows: [read, plainRead, fold, plainFold, bytes, plainBytes],
    verdicts: [
      compare({
        what: 'a read: withheld lines / lines',
        of: read,
        to: plainRead,
        target: { is: 'at most', value: 1.1 },
      }),
      compare({
        what: 'the first view: withheld lines / lines',
        of: fold,
        to: plainFold,
        target: { is: 'at most', value: 1.1 },
      }),
    ],
  };
}

/** Withholds every line that holds a text. */
async function withheldCopy(plain: string): Promise<{ readonly path: string; readonly stubs: number }> {
  const path = plain.replace(/\.db$/, '-stubs.db');
  for (const suffix of ['', '-wal', '-shm', '.lock']) rmSync(path + suffix, { force: true });
  copyFileSync(plain, path);
  if (existsSync(`${plain}-wal`)) throw new Error(`${plain} is open`);
  const store = openSqliteStore(path);
  const stubs = await stubsOf(store);
  await store.withholding.withhold(stubs);
  await store.close();
  return { path, stubs: stubs.length };
}

async function stubsOf({ log }: Store): Promise<readonly StubLine[]> {
  const seed = Buffer.alloc(32, 7);
  const key = { publicKey: publicKeyOf(seed), sign: signWith(seed) };
  const stubs: StubLine[] = [];
  for (let after = 0, count = 1; count > 0; after += count) {
    const page = await log.readPage(CHAMBER, after, PAGE);
    count = page.count;
    for (const [index, line] of page.ndjson.toString().split('\n').slice(0, -1).entries()) {
      const made = withhold(line, { at: 0, reason: 'law', log: log.logId, key });
      if ('stub' in made) stubs.push({ stream: CHAMBER, eventId: after + index + 1, line: Buffer.from(made.stub) });
    }
  }
  return stubs;
}

function measure(path: string): Promise<Figures> {
  return withServerOn(SERVICE, path, async ({ authority }) => {
    const base = `http://${authority}`;
    await (await fetch(base)).text();
    const startedAt = performance.now();
    await (await fetch(`${base}/chambers/${CHAMBER}`)).text();
    const foldMillis = performance.now() - startedAt;
    const reads: number[] = [];
    let bytes = 0;
    for (let read = 0; read < READS; read++) {
      const beganAt = performance.now();
      bytes = await readAll(base);
      reads.push(performance.now() - beganAt);
    }
    return { readMillis: median(reads), foldMillis, bytes };
  });
}

async function readAll(base: string): Promise<number> {
  let bytes = 0;
  for (let after = 0; ; after += PAGE) {
    const url = `${base}/chambers/${CHAMBER}/events?after=${after}&limit=${PAGE}`;
    const response = await fetch(url, { headers: { accept: 'application/x-ndjson' } });
    const { length } = await response.text();
    if (length === 0) return bytes;
    bytes += length;
  }
}
