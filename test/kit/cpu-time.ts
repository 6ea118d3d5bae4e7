// Records the CPU time of each test file, including its child processes, for the report of slow files.
import { readFileSync } from 'node:fs';
import { afterEach } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    cpuMillis?: number;
  }
}

const TICK_MILLIS = 10;

/** Measured from the load of this file, which precedes the test file and its imports. */
const start = cpuMillis();

afterEach(({ task }) => {
  task.file.meta.cpuMillis = cpuMillis() - start;
});

/** The CPU time of this process and its ended children; without /proc, of this process alone. */
function cpuMillis(): number {
  try {
    // utime, stime, cutime and cstime are fields 14 to 17; the name of the program, field 2, may contain spaces.
    const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
    const ticks = fields.split(' ').slice(11, 15).map(Number);
    return ticks.reduce((sum, each) => sum + each, 0) * TICK_MILLIS;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}
