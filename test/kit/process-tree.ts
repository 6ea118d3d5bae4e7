// Inspects and signals a process and its descendants through /proc. PostgreSQL has a child process per connection.
import { readFileSync } from 'node:fs';

/** Returns the process and all its descendants that have not exited. */
export function processTree(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return [pid, ...children.flatMap((child) => processTree(Number(child)))];
  } catch {
    return [];
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Kills the whole tree at once, like a power failure. */
export function killTree(pid: number): void {
  signalTree(pid, 'SIGKILL');
}

/** Signals the whole tree; the process itself comes last, because it may be the caller's. */
export function signalTree(pid: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
  for (const each of processTree(pid).toReversed()) {
    try {
      process.kill(each, signal);
    } catch {
      // The process has already exited.
    }
  }
}

/** Returns the CPU time of the process and its children, including ended ones, in milliseconds. */
export function cpuMillis(pid: number): number {
  const ticks = processTree(pid).flatMap((each) => {
    try {
      // After the name, which may contain spaces, come utime, stime, and those of ended children.
      const fields = readFileSync(`/proc/${each}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      return fields.slice(11, 15).map(Number);
    } catch {
      // The process has exited, and counts for its parent.
      return [];
    }
  });
  return ticks.reduce((sum, each) => sum + each, 0) * MS_PER_TICK;
}

const MS_PER_TICK = 10;
