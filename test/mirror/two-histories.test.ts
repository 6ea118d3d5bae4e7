// Two histories in one tree: each entry must match exactly one line, so that a second history cannot be hidden.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/crypto/merkle.ts';
import { Undecided } from '../../src/mirror/line-finder.ts';
import { Inconsistent } from '../../src/mirror/mirror.ts';
import { parseMisbehaviour, verifyMisbehaviour } from '../../src/tlog/misbehaviour.ts';
import { formatVerifierKey } from '../../src/tlog/note.ts';
import { verifyTlogProof } from '../../src/tlog/proof.ts';
import { run as runCli } from '../cli/run.ts';
import { hasPython } from '../kit/python.ts';
import { Signer } from '../kit/signer.ts';
import { type LoggedLine, lineAfter, STATIC_LOG_KEY, type StaticLog, serveLog } from '../kit/static-log.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { step } from './static-mirror.ts';

const CHECKER = fileURLToPath(new URL('../audit/check_proof.py', import.meta.url));
const VKEY = formatVerifierKey(STATIC_LOG_KEY);
const ACCOUNT = new Signer(new Uint8Array(32).fill(9)).did;
const OTHER_ACCOUNT = new Signer(new Uint8Array(32).fill(8)).did;

function chain(...streams: readonly LoggedLine['stream'][]): readonly LoggedLine[] {
  const lines: LoggedLine[] = [];
  for (const stream of streams) lines.push(lineAfter(lines, stream));
  return lines;
}

const HONEST = chain(ACCOUNT, 1, 1, 2, 1);
/** Event 3 of chamber 1, as shown to other readers. */
const HIDDEN = lineAfter(HONEST.slice(0, 3), 1, { other: true });
const TWO_HISTORIES = [...HONEST, HIDDEN];

async function expectInconsistent(log: StaticLog) {
  const folder = temporaryFolder();
  const { url } = await serveLog(log);
  const problem = await step(url, folder).catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Inconsistent);
  const { file, message } = problem as Inconsistent;
  const evidence = JSON.parse(readFileSync(file, 'utf8'));
  const cli = await runCli(['mirror', url, folder, '--once', '--json']);
  expect([cli.exitCode, JSON.parse(cli.out).file]).toEqual([3, file]);
  return { message, file, evidence };
}

describe('a mirror of a log', () => {
  it('a mirror copies an honest log', async () => {
    const { url } = await serveLog({ entries: HONEST });
    expect(await step(url, temporaryFolder())).toMatchObject({ size: 5, added: 5, unpublished: 0 });
  });

  it('a mirror stops at an event with two entries, and keeps evidence that becomes a proof with the other line', async () => {
    const { message, evidence } = await expectInconsistent({ entries: TWO_HISTORIES, served: HONEST });
    expect(message).toMatch(/^the log has event 3 of chamber 1 twice: again at index 5;/);
    expect(evidence).toMatchObject({ index: { index: 5, chamberId: 1, eventId: 3 }, line: HONEST[4]?.line });
    expect(verifyTlogProof(evidence.tlogProof, leafHash(Buffer.from(HIDDEN.line)), STATIC_LOG_KEY)?.size).toBe(6);
    expect(() => parseMisbehaviour(JSON.stringify(evidence))).toThrow();
  });

  it('a mirror writes a proof if the service serves both lines', async () => {
    const other = { ...HIDDEN, stream: 3, eventId: 1 };
    for (const log of [
      { entries: [...HONEST, HIDDEN], served: [...HONEST.slice(0, 4), HIDDEN] },
      { entries: TWO_HISTORIES, served: [...HONEST, other], index: { 5: { stream: 3, eventId: 1 } } },
    ]) {
      const folder = temporaryFolder();
      const { url, replace } = await serveLog({ entries: HONEST });
      await step(url, folder);
      replace(log);
      const problem = await step(url, folder).catch((error: unknown) => error);
      expect(problem).toBeInstanceOf(Inconsistent);
      const proof = parseMisbehaviour(readFileSync((problem as Inconsistent).file, 'utf8'));
      const { tlogProofs } = proof as { readonly tlogProofs: readonly string[] };
      expect(proof).toMatchObject({ kind: 'two-lines', lines: [HONEST[4]?.line, HIDDEN.line] });
      expect(await verifyMisbehaviour(proof)).toMatchObject({
        sentence: expect.stringMatching(/^The service has signed a log that has event 3 of chamber 1 twice: /),
      });
      const file = (problem as Inconsistent).file;
      expect((await runCli(['proof', file])).exitCode).toBe(0);
      const altered = { ...proof, lines: [HONEST[4]?.line, HONEST[4]?.line] };
      await expect(verifyMisbehaviour(parseMisbehaviour(JSON.stringify(altered)))).rejects.toThrow(
        'does not match its line',
      );
      const once = { ...altered, tlogProofs: [tlogProofs[0], tlogProofs[0]] };
      await expect(verifyMisbehaviour(parseMisbehaviour(JSON.stringify(once)))).rejects.toThrow('are one entry');
      if (hasPython)
        expect(execFileSync('python3', [CHECKER, file, 'none', VKEY], { encoding: 'utf8' })).toBe('two-lines\n');
    }
  });

  it.each<[string, StaticLog, RegExp]>([
    [
      'a chamber that is not served',
      { entries: TWO_HISTORIES, served: HONEST, index: { 5: { stream: 9, eventId: 1 } } },
      /^the service has no line for the entry at index 5, event 1 of chamber 9;/,
    ],
    [
      'an account that is not served',
      { entries: TWO_HISTORIES, served: HONEST, index: { 5: { stream: 'did:key:zNobody', eventId: 1 } } },
      /^the service has no line for the entry at index 5, event 1 of did:key:zNobody;/,
    ],
    [
      'a line of a different event',
      {
        entries: TWO_HISTORIES,
        served: [...HONEST, { ...HIDDEN, stream: 9, eventId: 1 }],
        index: { 5: { stream: 9, eventId: 1 } },
      },
      /^the service serves the line at index 5 as event 1 of chamber 9, but the line is of another event;/,
    ],
    [
      'an event beyond the end of its stream',
      { entries: TWO_HISTORIES, served: HONEST, index: { 5: { stream: 1, eventId: 5 } } },
      /^the log has event 5 of chamber 1 at index 5 without event 4 of chamber 1 before it;/,
    ],
    [
      'a line that does not follow the log’s previous line',
      { entries: [...HONEST, { ...HIDDEN, line: lineAfter([...HONEST.slice(0, 3), HIDDEN], 1).line, eventId: 4 }] },
      /^event 4 of chamber 1 does not contain the hash of the line before it;/,
    ],
  ])('a mirror stops at an entry of %s', async (_, log, problem) => {
    expect((await expectInconsistent(log)).message).toMatch(problem);
  });

  it('a mirror accepts missing account lines only from releases that did not publish them', async () => {
    const [first, second, ...rest] = chain(ACCOUNT, ACCOUNT, 1, ACCOUNT) as [LoggedLine, LoggedLine, ...LoggedLine[]];
    const { url } = await serveLog({ entries: [first, second, ...rest], served: rest });
    const folder = temporaryFolder();
    await expect(step(url, folder)).rejects.toThrow(Undecided);
    const cli = await runCli(['mirror', url, folder, '--once', '--json']);
    expect([cli.exitCode, JSON.parse(cli.out)]).toEqual([
      4,
      { undecided: expect.stringMatching(/^the service has no line for the entry at index 0, /) },
    ]);
    expect(await step(url, folder, { allowUnpublished: true })).toMatchObject({ size: 4, unpublished: 2 });
    const creation = lineAfter([], 7, { payload: { serviceKeys: {} } });
    const served = [creation, lineAfter([first], ACCOUNT)];
    const { message } = await expectInconsistent({ entries: [creation, first], served });
    expect(message).toMatch(/^the service has no line for the entry at index 1, event 1 of did:\S+;/);
  });
});

describe('lines more than a minute old', () => {
  const ts = new Date(Date.now() - 61_000).toISOString();
  const first = lineAfter([], 1, { ts });
  const entries = [first, lineAfter([first], 1, { ts }), lineAfter([], 2, { ts })];

  it.each([[[1]], [[2]], [[0]], [[undefined]]])(
    'lines more than a minute old must be under the served checkpoint: %j',
    async (sizes) => {
      const { url } = await serveLog({ entries, sizes });
      const problem = await step(url, temporaryFolder()).catch((error: unknown) => error);
      expect(problem).toBeInstanceOf(Inconsistent);
      const { message, file } = problem as Inconsistent;
      expect(message).toMatch(
        /^event \d of chamber \d is not covered by a checkpoint, although it is more than a minute old;/,
      );
      expect(entries.map(({ line }) => line)).toContain(JSON.parse(readFileSync(file, 'utf8')).line);
    },
  );

  it('lines more than a minute old may be under the next checkpoint', async () => {
    const { url } = await serveLog({ entries, sizes: [1, 1, 3] });
    expect(await step(url, temporaryFolder(), { restMs: 2_000 })).toMatchObject({ size: 3, added: 3 });
  });

  it('only lines more than a minute old must be covered', async () => {
    const { url } = await serveLog({ entries, sizes: [1] });
    const now = () => Date.parse(ts) + 59_000;
    expect(await step(url, temporaryFolder(), { now })).toMatchObject({ size: 1 });
  });
});

describe('a mirror with allowUnpublished', () => {
  const allowUnpublished = true;
  it.each<[string, StaticLog]>([
    [
      'an impossible account',
      {
        entries: [...HONEST, HIDDEN],
        served: HONEST,
        quiet: ['did:key:zNobody'],
        index: { 5: { stream: 'did:key:zNobody', eventId: 1 } },
      },
    ],
    [
      'an unknown account',
      { entries: [...HONEST, HIDDEN], served: HONEST, index: { 5: { stream: OTHER_ACCOUNT, eventId: 1 } } },
    ],
    [
      'an account, after a line with a wallet proof',
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
      'a chamber',
      { entries: [...HONEST, HIDDEN], served: HONEST, quiet: [9], index: { 5: { stream: 9, eventId: 1 } } },
    ],
  ])('a mirror with allowUnpublished still rejects a missing line of %s', async (_, log) => {
    const { url } = await serveLog(log);
    await expect(step(url, temporaryFolder(), { allowUnpublished })).rejects.toThrow(
      /^the service has no line for the entry/,
    );
  });
});
