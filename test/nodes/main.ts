// `npm run test:nodes`: three nodes on one PostgreSQL and 64 clients without affinity, in each failure scenario for a minute, or
// in one: `npm run test:nodes -- failover --seconds 60`. Fails unless every answered move is in the log once, no event is lost or
// duplicated, no read is stale and the auditor reports nothing.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { killTree } from '../kit/process-tree.ts';
import { ROOT } from '../kit/programs.ts';
import { runChaos } from './chaos.ts';
import { SCENARIOS } from './scenarios.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    clients: { type: 'string', default: '64' },
    seed: { type: 'string', default: '1' },
  },
});
const names = positionals.length > 0 ? positionals : Object.keys(SCENARIOS);
for (const name of names) {
  if (SCENARIOS[name] === undefined) {
    throw new Error(`unknown scenario ${name}; known: ${Object.keys(SCENARIOS).join(', ')}`);
  }
}

// Without this, the nodes and PostgreSQL would outlive the script.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => killTree(process.pid));

for (const scenario of names) {
  const outcome = await runChaos({
    scenario,
    millis: Number(values.seconds) * 1_000,
    clients: Number(values.clients),
    seed: Number(values.seed),
    program: join(ROOT, 'dist/src/main.js'),
  });
  if (outcome === undefined) {
    print(`${scenario}: skipped: pg_basebackup is not installed (Debian: postgresql)`);
    continue;
  }
  const { problems, figures } = outcome;
  print(`${scenario}: ${problems.length === 0 ? 'sound' : 'FAILED'}`);
  for (const line of [...figures, ...problems.map((problem) => `FAILED: ${problem}`)]) print(`  ${line}`);
  if (problems.length > 0) process.exitCode = 1;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
