// Records the CPU time of each test file and its child processes, for the report of slow files.
import { readFileSync } from 'node:fs';
import { afterEach } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    cpuMillis?: number;
  }
}

const TICK_MILLIS = 10;

/** The CPU time when this file is loaded, before the test file and its imports. */
const start = cpuMillis();

afterEach(({ task }) => {
  task.file.meta.cpuMillis = cpuMillis() - start;
});

/** Returns the CPU time of this process and its ended children, or of this process alone if there is no /proc. */
function cpuMillis(): number {
  try {
    // Fields 14 to 17 are utime, stime, cutime and cstime; field 2, the program's name, may contain spaces.
    const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
    const ticks = fields.split(' ').slice(11, 15).map(Number);
    return ticks.reduce((sum, each) => sum + each, 0) * TICK_MILLIS;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}
