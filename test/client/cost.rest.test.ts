// The costs that a hostile service can cause for the JavaScript and Python clients: bounded memory, one request and a bounded time.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';
import { ROOT } from '../kit/programs.ts';
import { python } from '../kit/python.ts';
import type { AttackName } from './attacker.ts';
import { AGAIN, type Case, Costs, casesOf, expectCheap, expectSingleRequest, NODE, TOO_LARGE } from './cost.ts';

const CALL_HOSTILE = fileURLToPath(new URL('call-hostile.ts', import.meta.url));
const CALL_HOSTILE_PY = fileURLToPath(new URL('call-hostile.py', import.meta.url));

const costs = Costs.forThisFile();

/** These attacks end at a time limit. The others may take the default times, which a busy machine may need. */
const BY_TIME: ReadonlySet<AttackName> = new Set(['drip', 'endlessHeaders']);

const runJs = ([call, attack]: Case) => {
  const limits = BY_TIME.has(attack) ? { responseMillisMax: 2_000, silenceMillisMax: 2_000 } : {};
  return (url: string) => costs.run(process.execPath, [...NODE, CALL_HOSTILE, url, call, JSON.stringify(limits)]);
};

const runPython = ([call, attack]: Case) => {
  const limits = BY_TIME.has(attack) ? { seconds: 2, silence_seconds: 2 } : {};
  const env = { PYTHONPATH: join(ROOT, 'src/client/python') };
  return (url: string) => costs.run('python3', [CALL_HOSTILE_PY, url, call, JSON.stringify(limits)], env);
};

const JS = casesOf({
  chambers: [
    'gzipBomb',
    'gzippedBomb',
    'endlessBody',
    'endlessError',
    'endlessHeaders',
    'endlessHints',
    'smallValues',
    'shapes',
    'longText',
    'drip',
  ],
  ideas: ['gzipBomb', 'endlessBody', 'smallValues', 'shapes', 'longItems', 'drip'],
  transcript: ['gzipBomb', 'longText'],
  history: ['gzipBomb', 'endlessLine', 'drip'],
  lines: ['endlessMessage', 'emptyMessages', 'endlessHeaders'],
  allLines: ['endlessMessage'],
  todos: ['gzipBomb', 'endlessEvent'],
  pass: ['endlessBody'],
});

describe('the JavaScript client', AGAIN, () => {
  it.each(JS)('the JavaScript client needs little memory and time for %s with %s', async (call, attack) => {
    const attacked = await costs.attackedBy(attack, 'client', runJs([call, attack]));
    expectCheap(attacked);
    if (TOO_LARGE.has(attack)) expectSingleRequest(attacked);
  });

  it('the JavaScript client opens a stream with one endless message only once', async () => {
    expectSingleRequest(await costs.attackedBy('endlessMessage', 'client', runJs(['lines', 'endlessMessage'])));
  });
});

const PYTHON = casesOf({
  chambers: [
    'gzipBomb',
    'endlessBody',
    'endlessError',
    'endlessHeaders',
    'endlessHints',
    'smallValues',
    'shapes',
    'longText',
    'drip',
  ],
  history: ['endlessLine', 'drip'],
  events: ['endlessLine', 'endlessEvent', 'drip'],
  allEvents: ['endlessEvent'],
  todo: ['smallValues'],
  pass: ['endlessBody', 'endlessError'],
});

describe('the Python client', AGAIN, () => {
  for (const [call, attack] of PYTHON) {
    python(`the Python client needs little memory and time for ${call} with ${attack}`, async () => {
      const attacked = await costs.attackedBy(attack, 'python', runPython([call, attack]));
      expectCheap(attacked);
      // The Python client accepts no compressed responses, so a bomb is 3 MB of text that is not JSON.
      if (TOO_LARGE.has(attack) && attack !== 'gzipBomb') expectSingleRequest(attacked);
    });
  }
});
