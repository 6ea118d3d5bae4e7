// Runs programs under strace, if it is installed.
import { execFileSync } from 'node:child_process';
import { isInstalled } from './programs.ts';

export const hasStrace = isInstalled('strace');

/** Runs a program in which every link() fails with this error, as on file systems without links. Returns its output. */
export function runWithoutLinks(
  error: string,
  program: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): string {
  const options = [
    '-f',
    '-qq',
    '-o',
    '/dev/null',
    '-e',
    'trace=link,linkat',
    '-e',
    `inject=link,linkat:error=${error}`,
  ];
  return execFileSync('strace', [...options, ...program], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}
