// Defects that can be injected into the sources of the forum and the stores, to show that the checker detects them. The replaced
// text must occur exactly once.

export interface Replacement {
  /** The path below src. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export interface Mutant {
  /** The property that the mutant breaks: an invariant of pipeline.ts, or a rule of the stores. */
  readonly breaks: string;
  readonly replacements: readonly Replacement[];
}

const PIPELINE = 'forum/pipeline.ts';
const BATCH = 'forum/batch.ts';
const DECISIONS = 'forum/decisions.ts';

function mutant(breaks: string, file: string, from: string, to: string): Mutant {
  return { breaks, replacements: [{ file, from, to }] };
}

const APPEND = 'const appending = this.#store.log.append(batch);';
const RESPOND = `for (const { pending, event, error } of batch.outcomes) {
      if (error !== undefined) pending.reject(error);
      else pending.resolve(event);
    }`;
const PUBLISH = `for (const stream of batch.touched) {
      const state = batch.states.get(stream);
      if (state) this.#streams.publish(stream, state);
    }`;

export const mutants: Readonly<Record<string, Mutant>> = {
  'respond-before-confirm': mutant('3', PIPELINE, APPEND, `${RESPOND}\n${APPEND}`),
  'redecision-skipped': mutant(
    '4',
    BATCH,
    'const streams = event === null ? pending.streams :',
    'const streams = event === null ? [] :',
  ),
  'signature-not-looked-at': mutant(
    '5',
    BATCH,
    'if (signature !== null && !this.accepted.has(signature)) this.signatures.push(signature);',
    '',
  ),
  'stale-head-published': mutant(
    '4',
    PIPELINE,
    'if (!state || conflicts.has(stream)) continue;',
    'if (!state) continue;',
  ),
  'taken-back-batch-kept': mutant(
    '4',
    PIPELINE,
    'this.#options.onFatal(error);\n    this.#decideAgain([]);',
    'this.#options.onFatal(error);',
  ),
  'ids-swapped': mutant(
    '1',
    PIPELINE,
    'pending.resolve(event);',
    'pending.resolve(batch.outcomes.find((other) => other.event !== null && other !== outcome)?.event ?? event);',
  ),
  'clock-back': {
    breaks: '3',
    replacements: [
      {
        file: DECISIONS,
        from: 'return Math.max(now, ...streams.map((stream) => states.get(stream)?.state.lastAt ?? 0));',
        to: 'return now;',
      },
      { file: 'forum/staging.ts', from: 'before !== undefined && at < before.state.lastAt', to: 'false' },
    ],
  },
  'expiry-by-the-clock': mutant('3', DECISIONS, 'requireFresh(times, at, this.#options.ages);', ''),
  'refused-is-fatal': mutant(
    'an error of a statement that was rolled back',
    'log/postgres/database-errors.ts',
    "return error.severity === 'ERROR' && !LOST.test(error.code ?? '') ? 'rolled back' : 'lost';",
    "if (/^(40|53|54000|55|57014|58)/.test(error.code ?? '')) return 'rolled back';\n    return LOST.test(error.code ?? '') ? 'lost' : undefined;",
  ),
  'quota-is-fatal': mutant(
    'an error of a transaction that was rolled back',
    'log/sqlite/failures.ts',
    'NOTHING_WRITTEN.test(code) || NO_ROOM.test(code)',
    'NOTHING_WRITTEN.test(code)',
  ),
  'publish-before-append': mutant('7', PIPELINE, APPEND, `${PUBLISH}\n${APPEND}`),
  'heads-not-expected': mutant(
    '3',
    BATCH,
    'for (const stream of streams) {\n      const head = this.headsBefore.get(stream);',
    'for (const stream of [] as StreamId[]) {\n      const head = this.headsBefore.get(stream);',
  ),
  'account-not-expected': mutant('3', 'forum/staging.ts', '    lease,\n    account,\n  };', '    lease,\n  };'),
  'account-of-the-batch-named': mutant(
    '3',
    PIPELINE,
    'outcomes.length >= BATCH_COMMANDS_MAX || followsStagedAccount',
    'outcomes.length >= BATCH_COMMANDS_MAX',
  ),
  'found-line-ignored': mutant(
    '5',
    PIPELINE,
    'if (line !== undefined) this.',
    'if (line !== undefined && event !== null) this.',
  ),
  'open-chambers-not-counted-again': mutant(
    '8',
    'forum/creations.ts',
    'return open.createdElsewhere === this.#createdElsewhere;',
    'return true;',
  ),
  'creations-at-once': mutant(
    '8',
    'forum/preparation.ts',
    'if (creator !== undefined) await creations.begin(creator, response);',
    '',
  ),
};
