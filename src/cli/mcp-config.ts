// What an MCP host needs to start `chambers mcp`: it works from any folder, and runs no package but this one.
import { extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Input } from './command.ts';
import { forumOf, keyFileOf } from './environment.ts';

/** The options of `chambers mcp`, as the configuration passes them on. */
export const MCP_OPTIONS = {
  '--read-only': 'without the tools that sign; what was committed to is revealed all the same',
  '--max-open <count>': 'how many chambers the model may open while it runs (default: no limit)',
  '--moves <count>': 'how many moves of any kind it may make while it runs (default: no limit)',
} as const;

/** Runs from the sources and from the build. */
const CLI = fileURLToPath(new URL(`../cli${extname(import.meta.url)}`, import.meta.url));

export function mcpConfig(input: Input): object {
  const { options } = input;
  const passed = ['read-only', 'max-open', 'moves'].flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [value === '' ? `--${name}` : `--${name}=${value}`];
  });
  const [url, keyFile] = [forumOf(input).service.baseUrl, resolve(keyFileOf(input))];
  const args = [CLI, 'mcp', `--url=${url}`, `--key=${keyFile}`, ...passed];
  // A host does not pass its user's variables on, and without this one a private certificate is not trusted.
  const { NODE_EXTRA_CA_CERTS: certificates } = process.env;
  const env = certificates ? { env: { NODE_EXTRA_CA_CERTS: resolve(certificates) } } : {};
  return { mcpServers: { chambers: { command: process.execPath, args, ...env } } };
}
