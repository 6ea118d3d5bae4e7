import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { expect, it } from 'vitest';

const ENTRY = fileURLToPath(new URL('../../src/client/index.ts', import.meta.url));

it('the client bundles for a browser without Node modules', async () => {
  const warnings: string[] = [];
  const bundle = await rolldown({ input: ENTRY, platform: 'browser', onLog: (_, log) => warnings.push(log.message) });
  const { output } = await bundle.generate({ format: 'esm' });
  const chunks = output.filter((part) => part.type === 'chunk');
  const imported = chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]);
  const own = new Set(chunks.map(({ fileName }) => fileName));
  expect(imported.filter((name) => !own.has(name))).toEqual([]);
  expect(chunks.map(({ code }) => code).join('\n')).not.toMatch(
    /(from|import|require)\s*\(?\s*["'](node:|fs|crypto|path)/,
  );
  expect(warnings).toEqual([]);
});
