// Reports slow test files, and fails the run if a file of the fast set belongs in the slow set.
import type { Reporter, TestModule } from 'vitest/node';

const REPORTED_SECONDS = { fast: 5, rest: 30 };
/** A limit of CPU time, because elapsed time depends on the machine's load. */
const CPU_SECONDS_MAX = 20;

export class SlowFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.map((module) => ({
      set: module.project.name.startsWith('fast') ? ('fast' as const) : ('rest' as const),
      path: module.relativeModuleId,
      seconds: module.diagnostic().duration / 1_000,
      cpuSeconds: (module.meta().cpuMillis ?? 0) / 1_000,
    }));
    const slow = rows
      .filter(({ set, seconds }) => seconds > REPORTED_SECONDS[set])
      .sort((a, b) => b.seconds - a.seconds);
    if (slow.length > 0) console.log('\nSlow files:');
    for (const { path, seconds, cpuSeconds } of slow) {
      console.log(`${seconds.toFixed(1).padStart(6)} s, CPU ${cpuSeconds.toFixed(1).padStart(5)} s  ${path}`);
    }
    for (const { path, cpuSeconds } of rows.filter((row) => row.set === 'fast' && row.cpuSeconds > CPU_SECONDS_MAX)) {
      console.error(
        `${path} took ${cpuSeconds.toFixed(1)} s of CPU time; a file of the fast set may take ${CPU_SECONDS_MAX} s: ` +
          'move tests that repeat, wait or measure to a *.rest.test.ts file.',
      );
      process.exitCode = 1;
    }
  }
}
