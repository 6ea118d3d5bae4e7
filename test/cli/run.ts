// Runs the command line in the test's process and captures its output.
import { vi } from 'vitest';
import { cliMain } from '../../src/cli/main.ts';

export interface Run {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

/** `words` are the arguments after `chambers`; `env` is added to the process's variables. */
export async function run(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const printed: { out: string[]; err: string[] } = { out: [], err: [] };
  const out = vi.spyOn(console, 'log').mockImplementation((text: string) => void printed.out.push(text));
  const err = vi.spyOn(console, 'error').mockImplementation((text: string) => void printed.err.push(text));
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  try {
    const exitCode = await cliMain(words);
    return { exitCode, out: printed.out.join('\n'), err: printed.err.join('\n') };
  } finally {
    vi.unstubAllEnvs();
    out.mockRestore();
    err.mockRestore();
  }
}
