import { expect, it } from 'vitest';
import { ForumClient } from '../../src/client/index.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { READ_LIMITS } from '../../src/reading/limits.ts';
import { readList } from '../../src/reading/list.ts';
import { TEXT_CHARS_MAX } from '../../src/vocabulary/schemas.ts';
import { FullLogWriter, MEMBERS } from '../kit/full-log.ts';
import { run } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';

const LIMIT = 200;
/** A character that takes 6 bytes of JSON. */
const CONTROL = '\u0001';

it('the client reads the longest lists of ideas that a service with default limits sends', async () => {
  const path = temporaryDatabase();
  const text = CONTROL.repeat(TEXT_CHARS_MAX);
  const store = openSqliteStore(path);
  await new FullLogWriter(store.log).writeChamber(1, { text, backed: 2, deployed: MEMBERS });
  await store.close();
  const { url } = await run({ DATABASE_PATH: path });
  const forum = new ForumClient(url);

  const ofChamber = await forum.chamberIdeas(1);
  expect(ofChamber.map(({ slot }) => slot)).toEqual(Array.from({ length: MEMBERS }, (_, at) => at + 1));
  expect(ofChamber.every(({ description }) => description === text)).toBe(true);
  expect(await forum.ideas({ limit: LIMIT })).toHaveLength(LIMIT);
});

async function* pieces(text: string, bytes: number) {
  const all = Buffer.from(text);
  for (let at = 0; at < all.length; at += bytes) yield all.subarray(at, at + bytes);
}

it.each([
  '[]',
  ' [ ] ',
  '[1]',
  '[1, "a" ,null]\n',
  '[[1,[2]],{"a":[{"b":"],["}]}]',
  '["\\"","\\\\","\\\\\\",","議€😀"]',
])('a list with %s is parsed as by JSON.parse, however it is split into chunks', async (text) => {
  for (const bytes of [1, 2, 3, 100])
    expect(await readList(pieces(text, bytes), READ_LIMITS)).toEqual(JSON.parse(text));
});

it.each([
  '',
  ' ',
  '{}',
  '"[]"',
  '[',
  '[1',
  '[1,',
  '[1,]',
  '[,1]',
  '[1 2]',
  '[]]',
  '[][]',
  '[1}',
  '[{]]',
  '["a]',
  '}',
  '[]x',
])('%j is not accepted as a list', async (text) =>
  expect(await readList(pieces(text, 1), READ_LIMITS)).toBeUndefined(),
);

it.each([
  ['listBytesMax', '["aaaaaaaaaa"]', { listBytesMax: 13 }],
  ['listCharsMax', '[{"a":["bc"]},"d"]', { listCharsMax: 3 }],
  ['itemBytesMax', '["aaaaaaaaaa"]', { itemBytesMax: 11 }],
  ['jsonValuesMax', '[1,2,3,4,5]', { jsonValuesMax: 3 }],
  ['jsonValuesMax', `[${'['.repeat(40)}${']'.repeat(40)}]`, {}],
] as const)('a list beyond %s throws an error', async (limit, text, limits) => {
  await expect(readList(pieces(text, 1), { ...READ_LIMITS, ...limits })).rejects.toMatchObject({ limit });
});
