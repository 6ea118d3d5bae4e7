// Waits for a line of a child process's output.
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/**
 * Resolves with the first line that matches; rejects when the output ends before. All of the output is read until it ends, whatever
 * happens to the promise: a pipe that nobody reads fills up, and the child blocks at its next write.
 */
export function findLine(output: Readable, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    createInterface({ input: output })
      .on('line', (line) => {
        const match = pattern.exec(line);
        if (match !== null) resolve(match);
      })
      .on('close', () => reject(new Error('the output ended')));
  });
}
