// Reports slow files of the fast set, and fails the run for files that belong in the slow set.
import type { Reporter, TestModule } from 'vitest/node';

const REPORTED_SECONDS = 5;
/** In CPU time, because elapsed time depends on the machine's load. */
const CPU_SECONDS_MAX = 20;

export class SlowFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const fast = modules.filter(({ project }) => project.name.startsWith('fast'));
    const rows = fast.map((module) => ({
      path: module.relativeModuleId,
      seconds: module.diagnostic().duration / 1_000,
      cpuSeconds: (module.meta().cpuMillis ?? 0) / 1_000,
    }));
    const slow = rows.filter((row) => row.seconds > REPORTED_SECONDS).sort((a, b) => b.seconds - a.seconds);
    if (slow.length > 0) console.log(`\nFiles of the fast set that took over ${REPORTED_SECONDS} s:`);
    for (const { path, seconds, cpuSeconds } of slow) {
      console.log(`${seconds.toFixed(1).padStart(6)} s, CPU ${cpuSeconds.toFixed(1).padStart(5)} s  ${path}`);
    }
    for (const { path, cpuSeconds } of rows.filter((row) => row.cpuSeconds > CPU_SECONDS_MAX)) {
      console.error(
        `${path} took ${cpuSeconds.toFixed(1)} s of CPU time, and a file of the fast set may take ${CPU_SECONDS_MAX} s: ` +
          'move what repeats, waits or measures into a *.rest.test.ts.',
      );
      process.exitCode = 1;
    }
  }
}
