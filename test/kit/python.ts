// Runs Python for tests of the Python client and of proofs, which are skipped if Python or `cryptography` is missing.
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { it } from 'vitest';
import { ROOT } from './programs.ts';

function isInstalled(): boolean {
  try {
    execFileSync('python3', ['-c', 'import cryptography, sys; assert sys.version_info >= (3, 9)'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export const hasPython = isInstalled();
export const python = hasPython ? it : it.skip;
if (!hasPython) console.warn('Tests of Python programs are skipped: python3 with cryptography is not installed.');

/** The folder of the Python package `chambers`. */
export const PYTHON_CLIENT = join(ROOT, 'src/client/python');
export const PYTHON_ENV = { ...process.env, PYTHONPATH: PYTHON_CLIENT, PYTHONDONTWRITEBYTECODE: '1' };

interface PythonOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs a program that may import the client, and returns its output. */
export async function runPython(program: string, args: readonly string[], { env, input = '' }: PythonOptions = {}) {
  const running = promisify(execFile)('python3', ['-c', program, ...args], { env: { ...PYTHON_ENV, ...env } });
  running.child.stdin?.end(input);
  return (await running).stdout;
}
