// The vectors in fixtures/logs are those that the tests make.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { vectors } from './vectors.ts';

const FOLDER = '../../fixtures/logs/vectors';

test('the folder holds what they are made of, byte for byte', async () => {
  const { index, texts } = await vectors();
  await expect(`${JSON.stringify(index, null, 2)}\n`).toMatchFileSnapshot(`${FOLDER}/index.json`);
  for (const [file, text] of texts) await expect(text).toMatchFileSnapshot(`${FOLDER}/${file}`);
  const folder = readdirSync(fileURLToPath(new URL(FOLDER, import.meta.url)));
  expect(folder.sort()).toEqual([...texts.keys(), 'README.md', 'index.json'].sort());
});
