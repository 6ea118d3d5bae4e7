// The auditor of a service accounts for every entry of its log: one line of a listed chamber or of an account, and no other.
import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { WatchedAccounts } from '../../src/audit/account/watched-accounts.ts';
import type { OnEvent } from '../../src/audit/chamber/chamber-audit.ts';
import { auditMain } from '../../src/audit/main.ts';
import { ProofFolder } from '../../src/audit/receipts/proof-folder.ts';
import { LogAccounting } from '../../src/audit/service/log-accounting.ts';
import { ServiceLog } from '../../src/audit/service/service-log.ts';
import { AuditedService } from '../../src/audit/service/service-reader.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import { verifyTlogProof } from '../../src/tlog/proof.ts';
import { debating, run } from '../kit/service.ts';
import { type LoggedLine, lineAfter, STATIC_LOG_KEY, type StaticLog, serveLog } from '../kit/static-log.ts';
import { openTestStore } from '../kit/store.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { entry } from '../log/entries.ts';

const ACCOUNT = 'did:key:zAccount';

function chain(...streams: readonly LoggedLine['stream'][]): readonly LoggedLine[] {
  const lines: LoggedLine[] = [];
  for (const stream of streams) lines.push(lineAfter(lines, stream));
  return lines;
}

const HONEST = chain(ACCOUNT, 1, 1, 2, 1, ACCOUNT);
/** What other readers are shown as event 3 of chamber 1. */
const HIDDEN = lineAfter(HONEST.slice(0, 3), 1, { other: true, ts: '2026-01-01T00:00:00.000Z' });
const TWO_HISTORIES = [...HONEST, HIDDEN];

/** What the auditor says of the log, once it has read these chambers. */
async function problemsOf(log: StaticLog, chamberIds: readonly number[] = [1, 2]) {
  const { url } = await serveLog(log);
  const service = new AuditedService(url);
  const proofs = temporaryFolder();
  const audited = { service, published: new ServiceLog(service), proofs: new ProofFolder(proofs) };
  const { accounting, problem } = await LogAccounting.open(audited);
  if (accounting === undefined) return { problems: [problem], proofs };
  const problems: (string | undefined)[] = [];
  for (const chamberId of chamberIds) {
    accounting.begin(chamberId);
    for (const { stream, eventId, line } of log.served ?? log.entries) {
      const position = { eventId, leaf: leafHash(Buffer.from(line)), kind: 'next' } as const;
      const event = JSON.parse(line) as Parameters<OnEvent>[0];
      if (stream === chamberId) accounting.take({ ...event, payload: {} } as typeof event, position, Buffer.from(line));
    }
    problems.push(await accounting.problemOfChamber());
  }
  const nobody = new WatchedAccounts({ of: async () => undefined });
  return {
    problems: [...problems, ...(await accounting.conclude(nobody))].filter((each) => each !== undefined),
    proofs,
  };
}

describe('the entries of a log', () => {
  it('are all explained by its lines, those of accounts included', async () => {
    expect((await problemsOf({ entries: HONEST })).problems).toEqual([]);
  });

  it('are not those of two histories, whatever the index calls the other one', async () => {
    for (const [index, served, problem] of [
      [undefined, HONEST, /^the log has event 3 of chamber 1 twice: again at index 6: /],
      [{ stream: 1, eventId: 5 }, HONEST, /^the log has event 5 of chamber 1 at index 6, and event 4 of chamber 1 not/],
      [{ stream: 1, eventId: 4 }, HONEST, /^no line explains the entry at index 6 .* event 4 of chamber 1: /],
      [{ stream: 9, eventId: 1 }, HONEST, /^the log has chamber 9, which the service does not list: /],
      [
        { stream: 'did:key:zNo', eventId: 1 },
        HONEST,
        /^no line explains the entry at index 6 .* event 1 of did:key:zNo: /,
      ],
      [
        { stream: ACCOUNT, eventId: 3 },
        [...HONEST, lineAfter(HONEST, ACCOUNT)],
        /^the line of event 3 of did:key:zAccount is not the one that the log has at index 6: /,
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
      // A reader of the hidden line has the other half of a proof.
      const { tlogProof } = JSON.parse(readFileSync(file, 'utf8'));
      expect(verifyTlogProof(tlogProof, leafHash(Buffer.from(HIDDEN.line)), STATIC_LOG_KEY)?.size).toBe(7);
    }
  });

  it('show a line that is served instead of another one', async () => {
    const other = { ...HONEST[2], line: lineAfter(HONEST.slice(0, 2), 1, { other: true }).line } as LoggedLine;
    const { problems } = await problemsOf({ entries: HONEST, served: HONEST.with(2, other) });
    expect(problems).toEqual([
      expect.stringMatching(/^the line of event 2 of chamber 1 is not the one that the log has at index 2: /),
    ]);
  });

  it('need no line at the beginning of accounts of earlier releases, and need one in every later account', async () => {
    const entries = chain(ACCOUNT, ACCOUNT, 1, ACCOUNT);
    expect((await problemsOf({ entries, served: entries.slice(2) }, [1])).problems).toEqual([]);
    const foreign = lineAfter([...entries.slice(0, 1), { ...HIDDEN, stream: ACCOUNT, eventId: 2 }], ACCOUNT);
    const { problems } = await problemsOf(
      { entries: entries.with(3, foreign), served: [entries[2] as LoggedLine, foreign] },
      [1],
    );
    expect(problems).toEqual([
      expect.stringMatching(/^no line explains the entry at index 0 .* event 1 of did:key:zAcc/),
    ]);
  });

  it('of another root than the checkpoint, or without an index, are broken', async () => {
    expect((await problemsOf({ entries: HONEST, size: 5 })).problems).toEqual([
      expect.stringMatching(/^the published log can’t be read: |^the entries of the log have another root/),
    ]);
    const empty = HONEST.map(() => ({ stream: 'nobody', eventId: 0 }));
    expect((await problemsOf({ entries: HONEST, index: { ...empty } })).problems).toEqual([
      'the index does not say which event entry 0 is',
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
  expect(appended.moved.size).toBe(0);
  await store.close();
  const running = await run({ DATABASE_PATH: path }, before.clock);
  const { log, tree } = running.service.forum.store;
  await eventually(async () => expect((await tree.checkpoint())?.size).toBe(await log.lastPlace()), 20_000);
  vi.spyOn(console, 'log').mockImplementation(() => {});
  let kept: unknown;
  const keep = async (value: unknown) => {
    kept = value;
  };
  const args = { target: running.url, json: true, proofs: temporaryFolder(), allowSkippedIds: true, keep };
  expect(await auditMain(args as Parameters<typeof auditMain>[0])).toBe(3);
  expect(kept).toMatchObject({
    problems: expect.arrayContaining([
      expect.stringMatching(/^the log has chamber 2, which the service does not list/),
    ]),
  });
});
