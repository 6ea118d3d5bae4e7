// Which chain the service settles on: none, the one behind RPC_URL, or a development chain of its own.
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { Forum } from './forum/forum.ts';
import type { ChainStatus } from './http/context.ts';

export interface ChainLink {
  /** Resolves when the configuration was checked as far as the chain can be reached; throws when it is wrong. */
  start(): Promise<void>;
  status(): ChainStatus;
  stop(): Promise<void>;
}

interface ChainOptions {
  readonly config: Config;
  readonly forum: Forum;
  readonly logger: Logger;
}

export function openChain(_options: ChainOptions): ChainLink {
  return NO_CHAIN;
}

const NO_CHAIN: ChainLink = {
  start: async () => {},
  status: () => ({ ok: true, details: { chain: null } }),
  stop: async () => {},
};
