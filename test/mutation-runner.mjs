// Runs tests for Stryker in one process: sources and tests are loaded once, and for each mutant the tests that reach it are
// called again, fastest first. This only works for tests of pure code, which keep no state between them.
import { globSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const TEST_FILES = 'test/{moves,projections,crypto,vocabulary}/**/*.test.ts';
const [SUCCESS, FAILED] = [0, 1];

export const strykerPlugins = [
  { kind: 'TestRunner', name: 'in-process', factory: Object.assign(createRunner, { inject: [] }) },
];

function createRunner() {
  /** The object that the instrumented sources read and update, under Stryker's name. */
  globalThis.__stryker__ ??= {};
  const instrumented = globalThis.__stryker__;
  const tests = new Map();

  async function run(ids) {
    const results = [];
    for (const id of ids) {
      instrumented.currentTestId = id;
      results.push(await resultOf(id, tests.get(id)));
      instrumented.currentTestId = undefined;
      if (instrumented.activeMutant !== undefined && results.at(-1).status === FAILED) break;
    }
    return results;
  }

  return {
    capabilities: () => ({ reloadEnvironment: false }),
    init: () => loadTests(tests),
    async dryRun() {
      const results = await run(tests.keys());
      for (const { id, timeSpentMs } of results) tests.get(id).duration = timeSpentMs;
      return { status: 'complete', tests: results, mutantCoverage: instrumented.mutantCoverage };
    },
    async mutantRun({ activeMutant, testFilter, hitLimit }) {
      Object.assign(instrumented, { activeMutant: activeMutant.id, hitCount: 0, hitLimit });
      const durationOf = (id) => tests.get(id).duration ?? 0;
      const results = await run((testFilter ?? [...tests.keys()]).toSorted((a, b) => durationOf(a) - durationOf(b)));
      instrumented.activeMutant = undefined;
      if (instrumented.hitCount > hitLimit) return { status: 'timeout', reason: 'hit limit reached' };
      const failed = results.find(({ status }) => status === FAILED);
      if (failed === undefined) return { status: 'survived', nrOfTests: results.length };
      const { id, failureMessage } = failed;
      return { status: 'killed', killedBy: [id], failureMessage, nrOfTests: results.length };
    },
  };
}

async function resultOf(id, { call }) {
  const start = performance.now();
  const outcome = await call().then(
    () => ({ status: SUCCESS }),
    (error) => ({ status: FAILED, failureMessage: String(error?.message ?? error) }),
  );
  return { id, name: id, timeSpentMs: performance.now() - start, ...outcome };
}

/** `describe` and `it` collect the tests; everything else comes from vitest. */
async function loadTests(tests) {
  globalThis.__vitest_worker__ = { config: {}, filepath: '', environment: { name: 'node' } };
  let [path, afterEachTest] = [[], []];
  const each = (collect) => (rows) => (title, body) => {
    for (const [index, row] of rows.entries())
      collect(`${title} (${index})`, () => body(...(Array.isArray(row) ? row : [row])));
  };
  const describe = (title, body) => {
    path.push(title);
    body();
    path.pop();
  };
  const it = (title, body) => {
    const cleanUp = [...afterEachTest];
    tests.set([...path, title].join(' '), {
      async call() {
        try {
          await body();
        } finally {
          for (const act of cleanUp) await act();
        }
      },
    });
  };
  describe.each = each(describe);
  it.each = each(it);
  const afterEach = (act) => afterEachTest.push(act);
  const { expect, vi } = await import('vitest');
  globalThis.__inProcessVitest = { expect, vi, describe, it, test: it, afterEach };
  const names = Object.keys(globalThis.__inProcessVitest).join(', ');
  const source = `export const { ${names} } = globalThis.__inProcessVitest;`;
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'vitest'
        ? { url: `data:text/javascript,${encodeURIComponent(source)}`, shortCircuit: true }
        : next(specifier, context),
  });
  for (const file of globSync(TEST_FILES).sort()) {
    [path, afterEachTest] = [[file], []];
    await import(pathToFileURL(join(process.cwd(), file)).href);
  }
}
