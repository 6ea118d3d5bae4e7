// A check looks at what a start needs, and changes nothing. The checks run in order: each may use what an earlier one has found.
import type { Config } from '../../config.ts';
import type { FoundLog } from '../../log/found-log.ts';
import type { RelayerConfig } from '../../relayer/context.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { Finding } from './finding.ts';

export interface CheckInput {
  /** The configuration was read from it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Config;
  readonly time: () => Millis;
  /** A service of these settings runs: it has the ports and the database, which are not tried. */
  readonly isRunning: boolean;
}

export interface ProbedChain {
  readonly findings: readonly Finding[];
  /** With the id that the chain has, or should have. */
  readonly config: RelayerConfig;
  /** It responded. */
  readonly isReached: boolean;
  /** The time of its newest block; 0 if it is not known. */
  readonly blockAt: Millis;
}

/** What the checks have found. */
export interface CheckState extends CheckInput {
  /** Undefined if there is no log yet, or it can't be read. */
  log: FoundLog | undefined;
  isLogReadable: boolean;
  /** The chain behind RPC_URL. */
  chain: ProbedChain | undefined;
}

export type Check = (state: CheckState) => readonly Finding[] | Promise<readonly Finding[]>;

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
