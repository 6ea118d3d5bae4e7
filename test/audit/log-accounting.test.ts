// The audit of a service matches each entry of its log with exactly one line of a listed chamber or an account.
import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import type { AccountLog } from '../../src/audit/account/accounts.ts';
import { WatchedAccounts } from '../../src/audit/account/watched-accounts.ts';
import { auditMain } from '../../src/audit/main.ts';
import { ProofFolder } from '../../src/audit/receipts/proof-folder.ts';
import { Checkpoints } from '../../src/audit/service/checkpoints.ts';
import { LogAccounting } from '../../src/audit/service/log-accounting.ts';
import { ServiceLog } from '../../src/audit/service/service-log.ts';
import { AuditedService } from '../../src/audit/service/service-reader.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import { verifyTlogProof } from '../../src/tlog/proof.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { debating, run } from '../kit/service.ts';
import { Signer } from '../kit/signer.ts';
import { type LoggedLine, lineAfter, noteOver, STATIC_LOG_KEY, type StaticLog, serveLog } from '../kit/static-log.ts';
import { openTestStore } from '../kit/store.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { entry } from '../log/entries.ts';

const ACCOUNT = new Signer(new Uint8Array(32).fill(9)).did;

function chain(...streams: readonly LoggedLine['stream'][]): readonly LoggedLine[] {
  const lines: LoggedLine[] = [];
  for (const stream of streams) lines.push(lineAfter(lines, stream));
  return lines;
}

const OTHER_ACCOUNT = new Signer(new Uint8Array(32).fill(8)).did;
const HONEST = chain(ACCOUNT, 1, 1, 2, 1, ACCOUNT);
/** Other readers see this line as event 3 of chamber 1. */
const HIDDEN = lineAfter(HONEST.slice(0, 3), 1, { other: true, ts: '2026-01-01T00:00:00.000Z' });
const TWO_HISTORIES = [...HONEST, HIDDEN];

interface Given {
  /** The chambers that the service lists. */
  readonly chamberIds?: readonly number[];
  readonly accounts?: WatchedAccounts;
  readonly keptNotes?: readonly string[];
  /** The age of the lines from which the chambers were judged. */
  readonly ageMs?: number;
  /** The last event of chamber 1 that was served when the chamber was judged. */
  readonly judgedTo?: number;
  readonly restMs?: number;
  readonly growthMs?: number;
}

const HOUR = 3_600_000;
const NOW = Date.UTC(2030, 0, 1);
const CLOCK = { now: () => NOW, isStated: true };
const NOBODY = new WatchedAccounts({ of: async () => undefined }, { clock: CLOCK });

/** Audits the log after the chambers were judged from the served lines. */
async function audited(log: StaticLog, given: Given = {}) {
  const {
    chamberIds = [1, 2],
    accounts = NOBODY,
    keptNotes = [],
    ageMs = HOUR,
    judgedTo = Number.POSITIVE_INFINITY,
  } = given;
  const waits = { restMs: given.restMs ?? 0, growthMs: given.growthMs ?? HOUR };
  const { url } = await serveLog(log);
  const service = new AuditedService(url);
  const proofs = temporaryFolder();
  const published = new ServiceLog(service);
  const checkpoints = new Checkpoints(published, { keptNotes, proofs: new ProofFolder(proofs) });
  const accounting = new LogAccounting({ service, published, checkpoints, clock: CLOCK, ...waits });
  await accounting.begin();
  for (const chamberId of chamberIds) {
    const last = (log.served ?? log.entries).findLast(
      ({ stream, eventId }) => stream === chamberId && (chamberId !== 1 || eventId <= judgedTo),
    );
    if (last !== undefined) accounting.note(chamberId, [headOf(last, NOW - ageMs)]);
  }
  await accounting.catchUp(accounts);
  const problems = [...(await accounting.conclude(accounts)), ...(await checkpoints.problems())];
  return {
    problems,
    proofs,
    unpublished: accounting.unpublished,
    doubts: [...checkpoints.doubts, ...accounting.doubts],
  };
}

function headOf({ eventId, line }: LoggedLine, at: number) {
  return { eventId, leaf: toHex(leafHash(Buffer.from(line))), at };
}

async function problemsOf(log: StaticLog, chamberIds?: readonly number[]) {
  return await audited(log, chamberIds && { chamberIds });
}

describe('the entries of a log', () => {
  it('the lines of chambers and accounts explain all entries of an honest log', async () => {
    expect((await problemsOf({ entries: HONEST })).problems).toEqual([]);
  });

  it('two histories in one log are broken, whatever event the index says the second is', async () => {
    for (const [index, served, problem] of [
      [undefined, HONEST, /^the log has event 3 of chamber 1 twice: again at index 6: /],
      [
        { stream: 1, eventId: 5 },
        HONEST,
        /^the log has event 5 of chamber 1 at index 6 without event 4 of chamber 1 before it/,
      ],
      [{ stream: 1, eventId: 4 }, HONEST, /^no line matches the entry at index 6 .* event 4 of chamber 1: /],
      [{ stream: 9, eventId: 1 }, HONEST, /^the log has chamber 9, which the service does not list: /],
      [
        { stream: 'did:key:zNo', eventId: 1 },
        HONEST,
        /^no line matches the entry at index 6 .* event 1 of did:key:zNo: /,
      ],
      [
        { stream: ACCOUNT, eventId: 3 },
        [...HONEST, lineAfter(HONEST, ACCOUNT)],
        /^the line of event 3 of did:\S+ is not the one that the log has at index 6: /,
      ],
    ] as const) {
      const { problems, proofs } = await problemsOf({
        entries: TWO_HISTORIES,
        served,
        ...(index && { index: { 6: index } }),
      });
      expect(problems).toEqual([expect.stringMatching(problem)]);
      const [file = ''] = /\S+evidence-entry-6-[0-9a-f]{12}\.json/.exec(problems[0] ?? '') ?? [];
      expect(file.startsWith(proofs)).toBe(true);
      // A reader of the hidden line holds the other half of a proof.
      const { tlogProof } = JSON.parse(readFileSync(file, 'utf8'));
      expect(verifyTlogProof(tlogProof, leafHash(Buffer.from(HIDDEN.line)), STATIC_LOG_KEY)?.size).toBe(7);
    }
  });

  it('a log reveals a line that is served in place of the logged one', async () => {
    const other = { ...HONEST[2], line: lineAfter(HONEST.slice(0, 2), 1, { other: true }).line } as LoggedLine;
    const { problems } = await problemsOf({ entries: HONEST, served: HONEST.with(2, other) });
    expect(problems).toEqual([
      expect.stringMatching(/^the line of event 2 of chamber 1 is not the one that the log has at index 2: /),
      'the service serves lines of chamber 1 that differ from those that were judged',
    ]);
  });

  it('only accounts of earlier releases may lack lines for their first entries', async () => {
    const entries = chain(ACCOUNT, ACCOUNT, 1, ACCOUNT);
    expect((await problemsOf({ entries, served: entries.slice(2) }, [1])).problems).toEqual([]);
    const foreign = lineAfter([...entries.slice(0, 1), { ...HIDDEN, stream: ACCOUNT, eventId: 2 }], ACCOUNT);
    const { problems } = await problemsOf(
      { entries: entries.with(3, foreign), served: [entries[2] as LoggedLine, foreign] },
      [1],
    );
    expect(problems).toEqual([
      expect.stringMatching(/^no line matches the entry at index 0 .* event 1 of did:key:z6Mk/),
    ]);
  });

  it('entries whose root differs from the checkpoint, or that lack an index, are broken', async () => {
    expect((await problemsOf({ entries: HONEST, size: 5 })).problems).toEqual([
      expect.stringMatching(/^the published log can’t be read: |^the root of the log’s entries differs/),
    ]);
    const empty = HONEST.map(() => ({ stream: 'nobody', eventId: 0 }));
    expect((await problemsOf({ entries: HONEST, index: { ...empty } })).problems).toEqual([
      'the index does not name the event of entry 0',
    ]);
  });
});

describe('a log that shows an old checkpoint', () => {
  const HIDING = [...HONEST, { ...HIDDEN, stream: 9, eventId: 1 }];
  const UNLISTED = /^the log has chamber 9, which the service does not list: /;

  it.each<[string, readonly (number | undefined)[]]>([
    ['an empty checkpoint', [0]],
    ['an older checkpoint', [2]],
    ['no checkpoint', [undefined]],
  ])('a log that first shows %s is held to its final checkpoint', async (_, first) => {
    const { problems } = await audited({ entries: HIDING, served: HONEST, sizes: [...first, HIDING.length] });
    expect(problems).toEqual([expect.stringMatching(UNLISTED)]);
  });

  it.each([[[0]], [[2]], [[undefined]]])(
    'a log whose checkpoint stays at %j lacks lines that are more than a minute old',
    async (sizes) => {
      const { problems } = await audited({ entries: HIDING, served: HONEST, sizes });
      expect(problems).toEqual(
        expect.arrayContaining([
          'event 3 of chamber 1 is not covered by a checkpoint, although it is more than a minute old',
          'event 1 of chamber 2 is not covered by a checkpoint, although it is more than a minute old',
        ]),
      );
    },
  );

  it('a checkpoint may lack lines of the last minute', async () => {
    expect((await audited({ entries: HONEST, sizes: [2] }, { ageMs: 59_000 })).problems).toEqual([]);
    expect((await audited({ entries: HONEST, sizes: [2] }, { ageMs: 60_000 })).problems).toHaveLength(2);
  });

  it('the auditor waits, up to a limit, for a log to catch up', async () => {
    const log = { entries: HONEST, sizes: [1, 2, 3, HONEST.length] };
    expect((await audited(log, { restMs: HOUR })).problems).toEqual([]);
    expect((await audited(log, { restMs: HOUR, growthMs: 0 })).problems).toHaveLength(2);
  });

  it('an old checkpoint is compared with a larger kept one', async () => {
    const { problems } = await audited(
      { entries: HIDING, served: HONEST, sizes: [HONEST.length] },
      { keptNotes: [noteOver(HIDING)] },
    );
    expect(problems).toEqual([
      expect.stringMatching(UNLISTED),
      'the service shows a checkpoint of size 6, but had already signed one of size 7',
    ]);
    const none = await audited({ entries: HONEST, sizes: [undefined] }, { keptNotes: [noteOver(HONEST)] });
    expect(none.problems).toContain('the service shows no checkpoint');
  });

  it('a kept checkpoint of a different log under the same key is undecided', async () => {
    const keptNotes = [noteOver(HONEST, HONEST.length, `static.example/log/${'f'.repeat(32)}`)];
    const { problems, doubts } = await audited({ entries: HONEST }, { keptNotes });
    expect([problems, doubts]).toEqual([
      [],
      [expect.stringMatching(/has also signed a checkpoint of size 6 of another log/)],
    ]);
  });

  it('a log that grows while chambers are judged is compared up to its end', async () => {
    const other = { ...HONEST[4], line: lineAfter(HONEST.slice(0, 4), 1, { other: true }).line } as LoggedLine;
    const { problems } = await audited({ entries: HONEST, served: HONEST.with(4, other), sizes: [4, HONEST.length] });
    expect(problems).toEqual([
      expect.stringMatching(/^the line of event 3 of chamber 1 is not the one that the log has at index 4: /),
    ]);
  });
});

describe('a line first served after its chamber was judged', () => {
  const seconds = (count: number) => new Date(NOW + count * 1_000).toISOString();
  const grown = (ts: string | undefined) => ({ entries: [...HONEST, lineAfter(HONEST, 1, { ts })] });
  const WITHHELD = /^event 4 of chamber 1 was not served when the lines were judged/;

  it.each([[seconds(-60)], [seconds(-3_600)], [seconds(61)], ['garbage'], [undefined]])(
    'a line first served after its chamber was judged is reported unless it was written during the audit: %s',
    async (ts) => {
      const { problems, doubts } = await audited(grown(ts), { judgedTo: 3 });
      expect([problems, doubts]).toEqual([[], [expect.stringMatching(WITHHELD)]]);
    },
  );

  it('a line first served after its chamber was judged is reported even if the first checkpoint lacks it', async () => {
    const log = { ...grown(seconds(-60)), sizes: [HONEST.length, HONEST.length + 1] };
    expect((await audited(log, { judgedTo: 3 })).doubts).toEqual([expect.stringMatching(WITHHELD)]);
  });

  it('a line first served after its chamber was judged is reported before a newer one', async () => {
    const first = lineAfter(HONEST, 1, { ts: seconds(0) });
    const entries = [...HONEST, first, lineAfter([...HONEST, first], 1, { ts: seconds(-3_600) })];
    const { doubts } = await audited({ entries }, { judgedTo: 3 });
    expect(doubts).toEqual([expect.stringMatching(/^event 5 of chamber 1 was not served/)]);
  });

  it.each([[seconds(-59)], [seconds(0)], [seconds(60)]])(
    'a line first served after its chamber was judged may be new: %s',
    async (ts) => {
      expect(await audited(grown(ts), { judgedTo: 3 })).toMatchObject({ problems: [], doubts: [] });
    },
  );

  it('an account line first served after the chambers were judged is reported', async () => {
    const judged = { entries: [], firstEventId: 1 } as unknown as AccountLog;
    const accounts = new WatchedAccounts({ of: async () => judged }, { clock: CLOCK });
    await accounts.of(ACCOUNT);
    const { doubts } = await audited({ entries: HONEST }, { accounts });
    expect(doubts).toEqual([expect.stringMatching(/^event 1 of did:key:\S+ was not served when/)]);
  });
});

describe('account entries without a line', () => {
  const OLD = chain(ACCOUNT, ACCOUNT, 1, ACCOUNT);
  const creation = lineAfter([], 1, { payload: { serviceKeys: {} } });

  it('account entries without a line are counted if a release before schema 4 may have withheld them', async () => {
    expect(await audited({ entries: OLD, served: OLD.slice(2) })).toMatchObject({ problems: [], unpublished: 2 });
    // The other agent has done nothing since.
    const quiet = [...OLD, lineAfter([], OTHER_ACCOUNT)];
    const both = await audited({ entries: quiet, served: OLD.slice(2), quiet: [OTHER_ACCOUNT] });
    expect(both).toMatchObject({ problems: [], unpublished: 3 });
  });

  it.each<[string, StaticLog]>([
    [
      'of no agent',
      {
        entries: [...HONEST, HIDDEN],
        served: HONEST,
        quiet: ['did:key:zNobody'],
        index: { 6: { stream: 'did:key:zNobody', eventId: 1 } },
      },
    ],
    [
      'of a missing account',
      { entries: [...HONEST, HIDDEN], served: HONEST, index: { 6: { stream: OTHER_ACCOUNT, eventId: 1 } } },
    ],
    [
      'after a creation that records keys',
      {
        entries: [creation, HIDDEN],
        served: [creation],
        quiet: [ACCOUNT],
        index: { 1: { stream: ACCOUNT, eventId: 1 } },
      },
    ],
    [
      'after a wallet was proven',
      (() => {
        const proven = lineAfter([], ACCOUNT, { type: 'agent.registered', payload: { walletProof: {} } });
        return {
          entries: [proven, HIDDEN],
          served: [proven],
          quiet: [OTHER_ACCOUNT],
          index: { 1: { stream: OTHER_ACCOUNT, eventId: 1 } },
        };
      })(),
    ],
    [
      'before a line that does not hold their hash',
      {
        entries: [HIDDEN, lineAfter(OLD.slice(0, 1), ACCOUNT)],
        served: [lineAfter(OLD.slice(0, 1), ACCOUNT)],
        index: { 0: { stream: ACCOUNT, eventId: 1 } },
      },
    ],
  ])('account entries %s are broken without a line', async (_, log) => {
    const { problems, unpublished } = await audited(log, { chamberIds: [1, 2] });
    expect([problems, unpublished]).toEqual([[expect.stringMatching(/^no line matches the entry at index \d /)], 0]);
  });

  it('account entries without a line are counted even if they belong to a second chamber', async () => {
    const history = chain(7, 7, 7).map((line, i) => ({ line, row: { stream: OTHER_ACCOUNT, eventId: i + 1 } }));
    const later = lineAfter([], 1, { payload: { serviceKeys: {} } });
    const entries = [...history.map(({ line }) => line), later];
    const index = Object.fromEntries(history.map(({ row }, i) => [i, row]));
    const log = { entries, served: [later], quiet: [OTHER_ACCOUNT], index };
    expect(await audited(log)).toMatchObject({ problems: [], unpublished: 3 });
  });
});

describe('the accounts used to judge chambers', () => {
  const entries = chain(ACCOUNT, ACCOUNT, ACCOUNT, 1);
  const account = (lines: readonly LoggedLine[]): AccountLog => {
    const ofLine = ({ line }: LoggedLine) => ({ leaf: toHex(leafHash(Buffer.from(line))), at: NOW - HOUR });
    return { entries: lines.map(ofLine), firstEventId: lines[0]?.eventId } as unknown as AccountLog;
  };
  const watching = async (...reads: readonly (readonly LoggedLine[])[]) => {
    const left = [...reads];
    const accounts = new WatchedAccounts({ of: async () => account(left.shift() ?? []) }, { clock: CLOCK });
    for (const _ of reads) await accounts.of(ACCOUNT);
    return accounts;
  };
  const own = entries.slice(0, 3);
  const other = lineAfter(own.slice(0, 2), ACCOUNT, { other: true });

  it('the accounts used to judge chambers match the log', async () => {
    expect((await audited({ entries }, { accounts: await watching(own) })).problems).toEqual([]);
  });

  it.each<[string, readonly (readonly LoggedLine[])[], RegExp]>([
    [
      'another line',
      [[...own.slice(0, 2), other]],
      /^the service serves lines of did:\S+ that differ from those that were judged$/,
    ],
    [
      'a different line, and then the logged one',
      [[...own.slice(0, 2), other], own],
      /^the service serves lines of did:/,
    ],
    [
      'the logged line, and then a different one',
      [own, [...own.slice(0, 2), other]],
      /^the service serves lines of did:/,
    ],
    [
      'all but its first line',
      [own.slice(1)],
      /^the service has served the account of did:\S+ from event 2, and at another time from event 1$/,
    ],
    [
      'all but its first lines, and then all',
      [own.slice(2), own],
      /^the service has served the account of did:\S+ from event 3, and at another time from event 1$/,
    ],
  ])('the accounts used to judge chambers are broken if the service served %s', async (_, reads, problem) => {
    const { problems } = await audited({ entries }, { accounts: await watching(...reads) });
    expect(problems[0]).toMatch(problem);
  });

  it('account lines must be in the log once they are a minute old, even if more lines follow', async () => {
    const hidden = lineAfter(own, ACCOUNT);
    const served = [...entries, hidden];
    const { problems } = await audited({ entries, served }, { accounts: await watching([...own, hidden]) });
    expect(problems).toEqual([
      expect.stringMatching(
        /^event 4 of did:\S+ is not covered by a checkpoint, although it is more than a minute old$/,
      ),
    ]);
  });
});

it('an audit of a service with a second history in its tree ends with exit code 3', { timeout: 60_000 }, async () => {
  const path = temporaryDatabase();
  const before = await run({ DATABASE_PATH: path });
  const { debate } = await debating(before);
  await debate('one');
  await before.stop();
  const store = openTestStore(path);
  const appended = await store.log.append({ entries: [entry(2, 1, { line: Buffer.from(HIDDEN.line) })] });
  expect(appended.conflicts.size).toBe(0);
  await store.close();
  const running = await run({ DATABASE_PATH: path }, before.clock);
  const { log, tree } = running.service.forum.store;
  await eventually(async () => expect((await tree.checkpoint())?.size).toBe(await log.lastPlace()), 20_000);
  vi.spyOn(console, 'log').mockImplementation(() => {});
  let kept: unknown;
  const keep = async (value: unknown) => {
    kept = value;
  };
  const now = running.clock.read;
  const args = { target: running.url, json: true, proofs: temporaryFolder(), allowSkippedIds: true, keep, now };
  expect(await auditMain(args as Parameters<typeof auditMain>[0])).toBe(3);
  expect(kept).toMatchObject({
    problems: expect.arrayContaining([
      expect.stringMatching(/^the log has chamber 2, which the service does not list/),
    ]),
  });
});
