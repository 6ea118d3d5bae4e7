// Counts the fsyncs that a server makes before it responds, as the kernel sees them, for moves sent one after another.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { drive, start, withFolder } from './processes.ts';
import type { Side } from './sides.ts';

const MOVES = 60;

/** Returns the reasons why two sides cannot be compared; none if both have every move on disk before they respond. */
export async function durabilityObjections(...sides: readonly Side[]): Promise<readonly string[]> {
  const objections: string[] = [];
  for (const side of sides) {
    const syncs = await syncsPerMove(side);
    if (syncs !== undefined && syncs < 1)
      objections.push(`${side.name} makes ${syncs.toFixed(2)} fsyncs for each move`);
  }
  return objections;
}

/** Returns the fsyncs per move, at least 1 if an accepted move is on disk; undefined without strace. */
async function syncsPerMove(side: Side): Promise<number | undefined> {
  if (spawnSync('strace', ['-o', '/dev/null', 'true']).status !== 0) return undefined;
  return withFolder(async (folder) => {
    const trace = join(folder, 'trace');
    // -D makes the server our own child, so that it gets the signals.
    const wrapper = ['strace', '-D', '-f', '--seccomp-bpf', '-e', 'trace=fsync,fdatasync', '-o', trace];
    const server = await start(side, { databasePath: join(folder, 'bench.db'), wrapper });
    const before = countSyncs(trace);
    const { failure } = await drive({
      kind: 'moves',
      authority: server.authority,
      connections: 1,
      agentsPerChamber: 1,
      movesPerConnection: MOVES,
      rounds: 1,
    });
    await server.stop();
    if (failure !== null) throw new Error(`${side.name}: ${failure}`);
    return (countSyncs(trace) - before) / MOVES;
  });
}

function countSyncs(trace: string): number {
  return readFileSync(trace, 'utf8').match(/(fsync|fdatasync)\(/g)?.length ?? 0;
}
