// The data of a chamber's page, in the browser and in the service.
import type { ChamberState } from '../../projections/chamber.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { AgentNames } from './format.ts';
import type { LiveModel } from './live-view.ts';

/** The relayer's problem if the service is configured without a chain. */
export const WITHOUT_CHAIN = 'the service is configured without one';

export interface ChamberModel extends AgentNames {
  readonly state: ChamberState;
  /** In ascending order: all events in the browser, only the last ones in the service. */
  readonly events: readonly ChamberEvent[];
  readonly now: Millis;
  /** Agents whose keys are retired, according to the service. */
  readonly retired: ReadonlySet<string>;
  /** Why the relayer can't work, from GET /health; undefined while it can. */
  readonly relayerProblem?: string | undefined;
  /** Set only in the browser. */
  readonly live?: LiveModel;
}
