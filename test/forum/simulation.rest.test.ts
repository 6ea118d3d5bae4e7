// Runs the pipeline on an in-memory store whose results the test controls: small cases in every order and with every single
// fault, large cases by seed. A checker that sees only the log and the history of requests and responses judges the results.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { onSqliteOnly } from '../kit/store.ts';
import { mutants } from './simulation/mutants.ts';

onSqliteOnly('it uses no store');

const PROGRAM = fileURLToPath(new URL('simulation/main.ts', import.meta.url));
const {
  SIMULATION_SEED = String(Date.now() % 1_000_000),
  SIMULATION_SECONDS = '3',
  SIMULATION_SENDS = '3',
} = process.env;
const EXHAUSTIVE_MS = 600_000;
/** Enough seeds to detect every mutant. */
const MUTANT_SEEDS = 150;

/** Runs in a separate process, because a mutant cannot be unloaded. The output holds the problems. */
async function simulate(...args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, ...args]);
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

describe('the pipeline', () => {
  it.each([
    ['two commands at two nodes, with every single fault', '2', '1'],
    // Four requests take half a minute on an idle machine.
    [`${SIMULATION_SENDS} commands at two nodes (SIMULATION_SENDS)`, SIMULATION_SENDS, '0'],
  ])('the pipeline is correct in every order of %s', { timeout: EXHAUSTIVE_MS }, async (_, sends, faults) => {
    expect(await simulate('exhaustive', '--sends', sends, '--faults', faults)).toMatchObject({ code: 0 });
  });

  it(`the pipeline is correct under random commands and faults (SIMULATION_SEED=${SIMULATION_SEED}, SIMULATION_SECONDS)`, async () => {
    const random = ['random', '--seed', SIMULATION_SEED, '--seconds', SIMULATION_SECONDS];
    expect(await simulate(...random)).toMatchObject({ code: 0 });
  });

  it.each([
    // In one process an agent created one chamber too many while another process created chambers.
    '3677',
    // The checker was wrong about a registration that changed nothing and about a clock that was set back.
    '41105',
    '885',
    // A node whose clock was behind the pass that began DEBATE named the next agent of PROPOSAL.
    '348',
  ])('the pipeline is correct with seed %s, which once exposed a bug', async (seed) => {
    expect(await simulate('random', '--seed', seed)).toMatchObject({ code: 0 });
  });
});

describe('the checker', () => {
  it.each(Object.keys(mutants))('the checker detects the mutant %s', async (mutant) => {
    const { code, output } = await simulate(
      'random',
      '--mutant',
      mutant,
      '--seed',
      '1',
      '--runs',
      String(MUTANT_SEEDS),
    );
    expect(output).toContain('"problems"');
    expect(code).toBe(1);
  });
});
