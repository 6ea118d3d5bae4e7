// A process and its children, as Linux counts them: PostgreSQL has one for each connection.
import { readFileSync } from 'node:fs';

/** The process and its children, and theirs; those that have gone are left out. */
export function processTree(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return [pid, ...children.flatMap((child) => processTree(Number(child)))];
  } catch {
    return [];
  }
}

/** As the death of their machine would: nobody says goodbye. */
export function killTree(pid: number): void {
  for (const each of processTree(pid)) {
    try {
      process.kill(each, 'SIGKILL');
    } catch {
      // It has gone by itself.
    }
  }
}
