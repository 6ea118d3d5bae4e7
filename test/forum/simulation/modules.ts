// Loads the forum for the simulation, with virtual timers and optionally a mutant in its sources.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Forum } from '../../../src/forum/forum.ts';
import { mutants, type Replacement } from './mutants.ts';

const SOURCES = new URL('../../../src/', import.meta.url).href;
const FORUM = `${SOURCES}forum/`;
const TIMERS = new URL('virtual-timers.ts', import.meta.url).href;

/** Loads the forum; must be called once per process, before any other import of the forum. */
export async function loadForum(mutant: string | undefined): Promise<typeof Forum> {
  const replacements = mutant === undefined ? [] : mutants[mutant]?.replacements;
  if (replacements === undefined)
    throw new Error(`unknown mutant ${mutant}; known: ${Object.keys(mutants).join(', ')}`);
  for (const replacement of replacements) requireOnce(replacement);
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const isTimers = specifier === 'node:timers/promises' && context.parentURL?.startsWith(FORUM);
      return isTimers ? { url: TIMERS, shortCircuit: true } : nextResolve(specifier, context);
    },
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const changes = replacements.filter(({ file }) => url === `${SOURCES}${file}`);
      if (changes.length === 0) return loaded;
      const source = changes.reduce((text, { from, to }) => text.replace(from, () => to), String(loaded.source));
      return { ...loaded, source };
    },
  });
  await import('./virtual-timers.ts');
  return (await import('../../../src/forum/forum.ts')).Forum;
}

/** Throws unless the mutant's text occurs exactly once; otherwise its run would prove nothing. */
function requireOnce({ file, from }: Replacement): void {
  const found = readFileSync(fileURLToPath(`${SOURCES}${file}`), 'utf8').split(from).length - 1;
  if (found !== 1) throw new Error(`${file} must contain this text once, but has it ${found} times: ${from}`);
}
