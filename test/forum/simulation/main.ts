// node test/forum/simulation/main.ts exhaustive|random [--mutant NAME] [--seed N] [--runs N] [--seconds N] [--scenario TEXT]
// Exits with 1 after finding a problem, and prints the steps that lead to it.
import { parseArgs } from 'node:util';
import { loadForum } from './modules.ts';

Error.stackTraceLimit = 6;
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    mutant: { type: 'string' },
    seed: { type: 'string' },
    runs: { type: 'string' },
    seconds: { type: 'string' },
    scenario: { type: 'string' },
    faults: { type: 'string' },
    sends: { type: 'string' },
  },
});
const startedAt = process.hrtime.bigint();
const seconds = () => Number((process.hrtime.bigint() - startedAt) / 1_000_000n) / 1000;
const Forum = await loadForum(values.mutant);

if (positionals[0] === 'exhaustive') await exhaustive();
else if (positionals[0] === 'random') await random();
else throw new Error('the first argument must be exhaustive or random');

async function exhaustive(): Promise<void> {
  const { Exhaustive } = await import('./exhaustive.ts');
  const { scenarios } = await import('./scenarios.ts');
  const exhaustive = new Exhaustive(Forum);
  for (const scenario of scenarios) {
    if (values.scenario !== undefined && !scenario.name.includes(values.scenario)) continue;
    const { states, interleavings, histories, found } = await exhaustive.explore(scenario, {
      faults: Number(values.faults ?? 1),
      sends: Number(values.sends ?? Number.POSITIVE_INFINITY),
    });
    if (found !== undefined) return report(found);
    print(
      `${scenario.name}: ${interleavings} interleavings, ${states} states, ${histories} histories judged, ${seconds()} s`,
    );
  }
}

async function random(): Promise<void> {
  const { simulate } = await import('./random.ts');
  const first = Number(values.seed ?? process.env['SIMULATION_SEED'] ?? 1);
  const runs = Number(values.runs ?? (values.seconds === undefined ? 1 : Number.POSITIVE_INFINITY));
  const millis = Number(values.seconds ?? Number.POSITIVE_INFINITY);
  const total = { commands: 0, events: 0, faults: 0 };
  let seed = first;
  for (; seed < first + runs && seconds() < millis; seed++) {
    const { found, commands, events, faults } = await simulate(Forum, seed);
    total.commands += commands;
    total.events += events;
    total.faults += faults;
    if (found !== undefined) return report(found);
  }
  print(
    `seeds ${first} to ${seed - 1}: ${total.commands} requests, ${total.events} events, ${total.faults} faults, ${seconds()} s`,
  );
}

function report(found: object): void {
  print(JSON.stringify(found, null, 2));
  process.exitCode = 1;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
