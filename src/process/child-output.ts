import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/**
 * Resolves with the first matching line; rejects if the output ends first. Reads the output to its end in any case, because a full pipe
 * would block the child's next write.
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
