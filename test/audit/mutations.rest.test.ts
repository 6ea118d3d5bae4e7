// The auditor detects every change of a single line of a valid export, and names the event.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { changed, leaves, similarValue } from './alter.ts';
import { audit, type Line, parse, toText } from './forge.ts';

const text = readFileSync(new URL('../../fixtures/logs/chamber.ndjson', import.meta.url), 'utf8');
const lines = text.trimEnd().split('\n');
const LAST = lines.length;

/** Values of the last line that only the chain or the service's clock can verify. */
const BEYOND_LINES = new Set([`${LAST} ts`, `${LAST} payload.reason`]);

const mutants = parse(lines).flatMap((record, index) =>
  leaves(record)
    .map((path) => ({ title: `${index + 1} ${path.join('.')}`, index, path, record }))
    .filter(({ title }) => !BEYOND_LINES.has(title)),
);

async function auditWith(index: number, ...replacement: readonly string[]) {
  return await audit(toText(lines.toSpliced(index, 1, ...replacement)));
}

describe('a changed value', () => {
  test.each(lines.map((_, index) => index + 1))(
    'a changed value of any member of event %i is detected',
    async (eventId) => {
      for (const { index, path, record, title } of mutants.filter((mutant) => mutant.index === eventId - 1)) {
        const { named } = await auditWith(index, canonicalJson(changed(record, path, similarValue)));
        expect(named, title).toContain(eventId);
      }
    },
  );
});

describe('a member', () => {
  test.each(lines.map((_, index) => index + 1))(
    'a member removed from event %i or added to it is detected',
    async (eventId) => {
      const record = parse(lines)[eventId - 1] as Line;
      for (const name of Object.keys(record)) {
        const { [name]: _, ...rest } = record;
        expect((await auditWith(eventId - 1, canonicalJson(rest))).named, `without ${name}`).toContain(eventId);
      }
      for (const name of ['zzz', 'constructor', '__proto__']) {
        const more = canonicalJson(record).replace(/}$/, `,${JSON.stringify(name)}:1}`);
        expect((await auditWith(eventId - 1, more)).named, `with ${name}`).toContain(eventId);
      }
    },
  );
});

describe('the same record as different bytes', () => {
  const variants: readonly (readonly [string, (line: string) => string])[] = [
    ['a space', (line) => line.replace(':', ': ')],
    ['a carriage return', (line) => `${line}\r`],
    [
      'a different order of members',
      (line) =>
        canonicalJson(JSON.parse(line))
          .replace(/^\{("chamberId":1),/, '{')
          .replace(/}$/, ',"chamberId":1}'),
    ],
    ['a member twice', (line) => line.replace(/^\{/, '{"chamberId":1,')],
    ['an unnecessary escape', (line) => line.replace('"type"', '"\\u0074ype"')],
    ['a byte order mark', (line) => `\uFEFF${line}`],
  ];
  test.each(variants)('%s is detected in any line', async (_title, vary) => {
    for (const [index, line] of lines.entries()) {
      const { named, broken } = await auditWith(index, vary(line));
      expect(broken).toContain('form');
      expect(named, `event ${index + 1}`).toContain(index + 1);
    }
  });
});

describe('a line', () => {
  const inner = lines.map((_, index) => index).slice(0, -1);

  test.each(inner)('a line dropped after %i others is reported as missing', async (index) => {
    const { findings } = await auditWith(index);
    expect(findings('order')).toEqual([{ eventIds: [index + 1], sentence: `event ${index + 1} is missing` }]);
  });

  test.each(inner)('a line repeated after %i others is reported', async (index) => {
    const line = lines[index] as string;
    const sentence = `event ${index + 1} occurs more than once`;
    const twice = await auditWith(index, line, line);
    const atTheEnd = await audit(toText([...lines, line]));
    for (const { broken, findings } of [twice, atTheEnd]) {
      expect(broken).toEqual(['order']);
      expect(findings('order')).toEqual([{ eventIds: [index + 1], sentence }]);
    }
  });

  test.each(inner)('a line swapped with the next one after %i others is reported', async (index) => {
    const swapped = [lines[index + 1] as string, lines[index] as string];
    const { findings } = await audit(toText(lines.toSpliced(index, 2, ...swapped)));
    const sentence = `event ${index + 1} comes after event ${index + 2}`;
    expect(findings('order')).toEqual([{ eventIds: [index + 1, index + 2], sentence, code: 'late' }]);
  });

  test('a line moved far away is reported', async () => {
    const [first, ...rest] = lines as [string, ...string[]];
    expect((await audit(toText([...rest, first]))).named).toContain(1);
    expect((await audit(toText([lines.at(-1) as string, ...lines.slice(0, -1)]))).named).toContain(LAST);
  });

  test.each(lines.map((_, index) => index))(
    'a line that is not a record, after %i others, is reported without its neighbours',
    async (index) => {
      const { findings, check } = await audit(toText(lines.toSpliced(index, 0, '{"note":"inserted"}')));
      expect(findings('form')).toHaveLength(1);
      expect(findings('form')[0]?.eventIds).toEqual([index + 1]);
      expect(check('order').verdict).toBe('verified');
      expect(check('chain').verdict).toBe('verified');
    },
  );
});

describe('an export that ends early', () => {
  test('the report of an export that ends within its last line names the torn event', async () => {
    const bytes = Buffer.from(text);
    const start = bytes.length - Buffer.from(lines[LAST - 1] as string).length - 1;
    for (const end of [start + 1, start + 100, bytes.length - 2]) {
      const { findings } = await audit(bytes.subarray(0, end));
      expect(findings('form')).toEqual([
        {
          eventIds: [LAST],
          sentence: `line ${LAST} (counted as event ${LAST}) is torn: the input ends within it`,
        },
      ]);
    }
  });

  test('an export that lacks only its final line break is complete', async () => {
    expect((await audit(text.trimEnd())).broken).toEqual([]);
  });
});
