// `npm run test:soak`: days of use within minutes, on SQLite or PostgreSQL, and the resources of the service's process in each
// quarter. Exits with 0 only if no figure grew from the second quarter to the last and all chambers were committed.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../kit/postgres-server.ts';
import { killTree } from '../kit/process-tree.ts';
import { TABLE_HEAD, tableLine } from './figures.ts';
import { runSoak } from './soak.ts';

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    chambers: { type: 'string', default: '400' },
    rounds: { type: 'string', default: '20' },
    'rpc-calls': { type: 'string', default: '20000' },
    'page-loads': { type: 'string', default: '2000' },
    'freeze-seconds': { type: 'string', default: '12' },
    /** Space for two snapshots of about 60 MB each. */
    snapshots: { type: 'string' },
  },
});
const rounds = Number(values.rounds);
if (!['sqlite', 'postgres'].includes(values.store)) throw new Error('--store must be sqlite or postgres');
if (!(rounds >= 4 && rounds % 4 === 0))
  throw new Error('--rounds must be a multiple of 4, because all quarters have the same number');

// Without this, the service, its chain and PostgreSQL would outlive the script.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => killTree(process.pid));

const folder = mkdtempSync(join(tmpdir(), 'chambers-soak-'));
const postgres = values.store === 'postgres' ? await startPostgres() : undefined;
const snapshots = values.snapshots === undefined ? undefined : resolve(values.snapshots);
if (snapshots !== undefined) mkdirSync(snapshots, { recursive: true });
print(TABLE_HEAD);
const problems = await runSoak({
  folder,
  store: postgres === undefined ? { DATABASE_PATH: join(folder, 'chambers.db') } : { DATABASE_URL: postgres.url },
  roundsPerQuarter: rounds / 4,
  chambersPerRound: Math.ceil(Number(values.chambers) / rounds),
  rpcCalls: Number(values['rpc-calls']),
  pageLoadsPerRound: Math.ceil(Number(values['page-loads']) / rounds),
  freezeMillis: Number(values['freeze-seconds']) * 1_000,
  snapshots,
  onQuarter: (quarter, row) => print(tableLine(`${quarter}`, row)),
});
await postgres?.stop();
rmSync(folder, { recursive: true, force: true });
for (const problem of problems) print(`FAILED: ${problem}`);
if (problems.length === 0) print(`no growth, and all chambers are committed (${values.store})`);
process.exitCode = problems.length === 0 ? 0 : 1;

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
