// A check verifies a precondition of the start, and changes nothing. Checks run in order, and may use the results of earlier ones.
import type { Config } from '../../config.ts';
import type { ExistingLog } from '../../log/existing-log.ts';
import type { RelayerConfig } from '../../relayer/context.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { Finding } from './finding.ts';

export interface CheckInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Config;
  readonly time: () => Millis;
  /** Whether a service with these settings is running, so that its ports and its database lock are not tried. */
  readonly isRunning: boolean;
}

export interface ProbedChain {
  readonly findings: readonly Finding[];
  /** The settings, with the chain's actual or expected id. */
  readonly config: RelayerConfig;
  readonly isReached: boolean;
  /** The time of the newest block; 0 if unknown. */
  readonly blockAt: Millis;
}

export interface CheckState extends CheckInput {
  /** Undefined if there is no log yet or it can't be read. */
  log: ExistingLog | undefined;
  isLogReadable: boolean;
  /** The chain behind RPC_URL. */
  chain: ProbedChain | undefined;
}

export type Check = (state: CheckState) => readonly Finding[] | Promise<readonly Finding[]>;
