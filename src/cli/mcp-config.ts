// The configuration with which an MCP host starts `chambers mcp` from any folder.
import { extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Input } from './command.ts';
import { forumOf, keyFileOf } from './environment.ts';

/** The options of `chambers mcp` that the configuration passes on. */
export const MCP_OPTIONS = {
  '--read-only': 'leave out the tools that sign; existing commitments are still revealed',
  '--max-open <count>': 'chambers that the model may open while the server runs (default: no limit)',
  '--moves <count>': 'moves of any kind that the model may make while the server runs (default: no limit)',
} as const;

/** TypeScript when run from the sources, JavaScript in the build. */
const CLI = fileURLToPath(new URL(`../cli${extname(import.meta.url)}`, import.meta.url));

export function mcpConfig(input: Input): object {
  const { options } = input;
  const passed = ['read-only', 'max-open', 'moves'].flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [value === '' ? `--${name}` : `--${name}=${value}`];
  });
  const [url, keyFile] = [forumOf(input).service.baseUrl, resolve(keyFileOf(input))];
  const args = [CLI, 'mcp', `--url=${url}`, `--key=${keyFile}`, ...passed];
  // Hosts don't pass on environment variables, and Node needs this one to trust a private certificate.
  const { NODE_EXTRA_CA_CERTS: certificates } = process.env;
  const env = certificates ? { env: { NODE_EXTRA_CA_CERTS: resolve(certificates) } } : {};
  return { mcpServers: { chambers: { command: process.execPath, args, ...env } } };
}
