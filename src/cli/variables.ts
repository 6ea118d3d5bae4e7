// The CLI's own environment variables.
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { VARIABLES as SERVICE_VARIABLES } from '../config.ts';
import { CommandError } from './output.ts';

export const VARIABLES = {
  CHAMBERS_URL: 'base URL of the service (default: http://127.0.0.1:8787)',
  CHAMBERS_KEY_FILE: "the agent's key file (default: ~/.chambers/agent.json)",
  CHAMBERS_CHAMBER: 'set by chambers watch for its commands: the chamber',
  CHAMBERS_MUST: 'set by chambers watch for its commands: the duty, pass or commit',
  OWNER_PRIVATE_KEY: "the key of the contracts' owner, for contracts deploy and contracts set-relayer",
  NO_COLOR: 'set to any value to turn colours off',
} as const;

/** Loads the variables in the file, except those that are already set. */
export function loadVariables(file: string): void {
  for (const [name, value] of Object.entries(parseEnv(readText(file)))) process.env[name] ??= value;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError('usage', `--env-file: cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Throws if a CHAMBERS_ variable is unknown, because its name is probably misspelt. */
export function checkVariables(): void {
  const isUnknown = (name: string) =>
    name.startsWith('CHAMBERS_') && !Object.hasOwn(VARIABLES, name) && !Object.hasOwn(SERVICE_VARIABLES, name);
  const unknown = Object.keys(process.env).find(isUnknown);
  if (unknown === undefined) return;
  const problem = `unknown environment variable ${unknown}: CHAMBERS_URL and CHAMBERS_KEY_FILE are known`;
  throw new CommandError('usage', problem);
}
