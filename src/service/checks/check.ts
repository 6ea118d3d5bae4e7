// A check verifies a precondition of the start, and changes nothing. Checks run in order, and may use what earlier ones found.
import type { Config } from '../../config.ts';
import type { FoundLog } from '../../log/found-log.ts';
import type { RelayerConfig } from '../../relayer/context.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { Finding } from './finding.ts';

export interface CheckInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Config;
  readonly time: () => Millis;
  /** A service with these settings runs, so its ports and database are not tried. */
  readonly isRunning: boolean;
}

export interface ProbedChain {
  readonly findings: readonly Finding[];
  /** With the chain's actual or expected id. */
  readonly config: RelayerConfig;
  readonly isReached: boolean;
  /** The time of its newest block; 0 if unknown. */
  readonly blockAt: Millis;
}

export interface CheckState extends CheckInput {
  /** Undefined if there is no log yet or it can't be read. */
  log: FoundLog | undefined;
  isLogReadable: boolean;
  /** The chain behind RPC_URL. */
  chain: ProbedChain | undefined;
}

export type Check = (state: CheckState) => readonly Finding[] | Promise<readonly Finding[]>;

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
