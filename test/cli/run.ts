// Runs the command line within the test's process and keeps what it prints.
import { vi } from 'vitest';
import { cliMain } from '../../src/cli/main.ts';

export interface Run {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

/** `words` as after `chambers`; `env` are its own variables, on top of the process's others. */
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
