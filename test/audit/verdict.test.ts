// The verdict in one sentence: whatever changes in one line, the first sentence names that line.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { toAuditReport } from '../../src/audit/report/report.ts';
import { toText as toText80 } from '../../src/audit/report/text.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { changed, leaves, similarValue } from './alter.ts';
import { type Line, parse, rechained, report, toText } from './forge.ts';

const text = readFileSync(new URL('../../fixtures/logs/chamber.ndjson', import.meta.url), 'utf8');
const lines = text.trimEnd().split('\n');
const records = parse(lines);
const LAST = lines.length;

/** Values that no other line confirms. */
const BEYOND_LINES = new Set([`${LAST} ts`, `${LAST} payload.reason`]);

const firstSentence = (sentence: string) => sentence.split('. ')[0] ?? '';

describe('one altered value', () => {
  test.each(lines.map((_, index) => index + 1))('any altered value in event %i is the only cause', async (eventId) => {
    const record = records[eventId - 1] as Line;
    const paths = leaves(record).filter((path) => !BEYOND_LINES.has(`${eventId} ${path.join('.')}`));
    for (const path of paths) {
      const altered = lines.toSpliced(eventId - 1, 1, canonicalJson(changed(record, path, similarValue)));
      const { causes, sentence } = await report(toText(altered));
      const title = `${path.join('.')}: ${sentence}`;
      expect(causes, title).toHaveLength(1);
      expect(firstSentence(sentence), title).toMatch(new RegExp(`[Ee]vent ${eventId}\\b`));
    }
  });
});

const payloadOf = (eventId: number): Line => {
  const { payload } = records[eventId - 1] as Line;
  return payload as Line;
};
const withPayload = (eventId: number, changes: Line) =>
  records.map((record, index) =>
    index === eventId - 1 ? { ...record, payload: { ...payloadOf(eventId), ...changes } } : record,
  );
const comment = { comment: 'Walls!' };

describe('the first sentence', () => {
  test('the sentence about an honest log is one word', async () => {
    expect((await report(text)).sentence).toBe('Sound.');
  });

  test('the first sentence names the altered event of a rechained log, and counts the findings that follow', async () => {
    const { sentence, causes, checks } = await report(toText(rechained(withPayload(11, comment))));
    expect(sentence).toBe('Event 11 was altered after it was signed. 3 further findings follow from it.');
    expect(causes).toEqual([{ eventIds: [11], sentence: 'Event 11 was altered after it was signed' }]);
    const findings = checks.flatMap(({ name, findings }) => findings.map((finding) => ({ name, ...finding })));
    expect(findings.filter(({ isConsequence }) => isConsequence).map(({ name, cause }) => [name, cause])).toEqual([
      ['transactions', null],
      ['transactions', null],
      ['root', null],
    ]);
  });

  test('the first sentence names the first of several causes and counts the others', async () => {
    const [first, second] = [
      withPayload(5, { name: 'Other' }),
      withPayload(14, { commitment: `0x${'12'.repeat(32)}` }),
    ];
    const both = lines.with(4, canonicalJson(first[4])).with(13, canonicalJson(second[13]));
    const { sentence, causes } = await report(toText(both));
    expect(sentence).toMatch(
      /^Event 5 was altered after it was signed\. There is 1 more cause\. \d further findings follow/,
    );
    expect(causes.map(({ eventIds }) => eventIds)).toEqual([[5], [14]]);
  });

  test.each<readonly [string, readonly string[], string]>([
    ['a missing line', lines.toSpliced(5, 1), 'Event 6 is missing.'],
    ['two missing lines', lines.toSpliced(5, 2), 'Events 6 to 7 are missing.'],
    ['a repeated line', lines.toSpliced(5, 0, lines[5] as string), 'Event 6 occurs more than once.'],
    ['swapped lines', lines.toSpliced(5, 2, lines[6] as string, lines[5] as string), 'Event 6 comes after event 7.'],
    [
      'a foreign line',
      lines.toSpliced(5, 0, '{}'),
      'Line 6 (counted as event 6) has no type: it is not an event record.',
    ],
    ['a move omitted by the service', rechained(records.toSpliced(10, 1)), 'The moves do not match the committed root'],
    [
      'a different root',
      rechained(withPayload(19, { merkleRoot: `0x${'12'.repeat(32)}` })),
      'Event 19 commits a root other',
    ],
    ['an unsigned move', rechained(records.with(10, { ...records[10], request: null })), 'Event 11 has no signature.'],
  ])('the first sentence reports %s', async (_what, altered, sentence) => {
    expect((await report(toText(altered))).sentence).toContain(sentence);
  });

  test('the sentence lists undecided checks with the options that decide them', async () => {
    const later = records.slice(0, 16).with(15, { ...records[15], ts: '2030-01-01T04:10:00.000Z' });
    const { sentence, verdict } = await report(toText(rechained(later)));
    expect(verdict).toBe('undecided');
    expect(sentence).toMatch(/^Nothing is broken, but 1 thing could not be decided: event 16 .*--max-age/);
  });

  test('the sentence counts unsigned moves if they are allowed', async () => {
    const unsigned = rechained(records.slice(0, 16).with(10, { ...records[10], request: null }));
    expect((await report(toText(unsigned), { allowUnsigned: true })).sentence).toBe(
      'Sound, but no signature covers 1 of the moves.',
    );
  });
});

describe('a copy', () => {
  const CRLF = 'The copy has Windows line breaks (CRLF), first after line 1.';

  test('a copy with Windows line breaks has one finding', async () => {
    const { sentence, brokenEvents } = await report(toText(lines.map((line) => `${line}\r`)));
    expect([sentence, brokenEvents]).toEqual([`${CRLF} Nothing else is broken.`, [1]]);
  });

  test('a copy with a byte order mark has one finding', async () => {
    const { sentence } = await report(`\uFEFF${text}`);
    expect(sentence).toBe('The copy begins with a byte order mark. Nothing else is broken.');
  });

  test('the report of a copy with Windows line breaks and an altered event names the event first', async () => {
    const altered = lines.with(10, canonicalJson(withPayload(11, comment)[10]));
    const { sentence } = await report(altered.map((line) => `${line}\r\n`).join(''));
    expect(sentence).toMatch(/^Event 11 was altered after it was signed\. There is 1 more cause\. /);
  });

  test('the sentence about a copy that ends within a line reports a torn line', async () => {
    expect((await report(text.slice(0, -30))).sentence).toContain('is torn: the input ends within it');
  });

  test('a copy without a root long after the end of its chamber is reported as probably cut off', async () => {
    const cut = toText(lines.slice(0, 16));
    const end = Date.parse('2030-01-01T05:00:00.000Z');
    expect((await report(cut, { now: end })).sentence).toBe('Sound.');
    expect((await report(cut, { now: end + 3_600_000 })).sentence).toBe(
      'Sound, but the copy is probably cut off: the chamber ended at 2030-01-01T05:00:00.000Z, and no line commits its root.',
    );
  });

  test('a copy without the outcome of a graduated idea long after its end is reported as incomplete', async () => {
    const { sentence } = await report(toText(lines.slice(0, -1)), { now: Date.parse('2030-01-02T00:00:00.000Z') });
    expect(sentence).toBe('Sound, but no line records the outcome of graduated ideas: idea-2.');
  });

  test.each([
    ['UTF-16', Buffer.from(`\uFEFF${text}`, 'utf16le'), 'it is UTF-16 text, not UTF-8'],
    ['compressed', gzipSync(text), 'it is compressed with gzip'],
  ])('a copy that is %s is not audited', async (_what, bytes, sentence) => {
    await expect(report(bytes)).rejects.toThrow(sentence);
  });
});

describe('the printed report', () => {
  const print = async (bytes: string, isVerbose = false) =>
    toText80(toAuditReport('chamber-1.ndjson', { problems: [], chambers: [await report(bytes)] }), isVerbose);

  test('the printed report of a sound chamber is short', async () => {
    expect(await print(text)).toMatchInlineSnapshot(`
      "Sound.

      Chamber 1 of text: 22 lines, 16 moves
      root 0xa365c27310bf28731010a5a8e0b5cae745a0b0dbf671e69f861fe40f9a73f013

      17 verified, 0 broken, 10 not evaluated of 27 checks.
      Not evaluated (--verbose shows why): preview, views, contract, claims, balances,
      registration, seen, receipts, checkpoint, witnesses.
      A file alone does not show whether its end was cut off, or the state of the
      service and the chain: audit the service’s URL, with --rpc and --registry."
    `);
  });

  test('the printed report of a broken chamber separates causes and consequences', async () => {
    expect(await print(toText(rechained(withPayload(11, comment))))).toMatchInlineSnapshot(`
      "Event 11 was altered after it was signed. 3 further findings follow from it.

      Chamber 1 of text: 22 lines, 16 moves
      root 0x531a61c85c02817232812bfba5376b81a8b97eda35b7dc40e314a392eb127820

      Evidence:
        payload         event 11 (chamber.debated) does not match its request: comment
                        is "Walls!", not "No walls.\\n\\u0001 \\"quoted\\""

      Consequences:
        transactions    event 17: rawTransaction calls
                        commitChamber([1,"0xa365c27310bf28731010a5a8e0b5cae745a0b0dbf671e69f861fe40f9a73f013"]),
                        which was not due
        transactions    event 18: rawTransaction calls
                        commitChamber([1,"0xa365c27310bf28731010a5a8e0b5cae745a0b0dbf671e69f861fe40f9a73f013"]),
                        which was not due
        root            event 19 commits
                        0xa365c27310bf28731010a5a8e0b5cae745a0b0dbf671e69f861fe40f9a73f013
                        over 16 events, but the root of the 16 moves is
                        0x531a61c85c02817232812bfba5376b81a8b97eda35b7dc40e314a392eb127820

      14 verified, 3 broken, 10 not evaluated of 27 checks. Events named: 11, 17, 18,
      19.
      Not evaluated (--verbose shows why): preview, views, contract, claims, balances,
      registration, seen, receipts, checkpoint, witnesses."
    `);
  });

  test('the printed report has a row for every check on request', async () => {
    const rows = (await print(text, true)).match(/^(verified|broken|not evaluated) {2}/gm);
    expect(rows).toHaveLength(27);
    expect((await print(text, true)).match(/Sound\./g)).toHaveLength(1);
  });

  test('the printed report has one line for each sound chamber of a service, and a total', async () => {
    const sound = { ...(await report(text)), logId: 'log' };
    const chambers = [sound, { ...sound, chamberId: 2 }];
    expect(toText80(toAuditReport('http://x', { problems: [], chambers }), false)).toMatchInlineSnapshot(`
      "Sound.

      chamber 1        sound              22 events  root 0xa365c273…9a73f013
      chamber 2        sound              22 events  root 0xa365c273…9a73f013

      2 chambers, 44 events: 2 sound."
    `);
  });
});
