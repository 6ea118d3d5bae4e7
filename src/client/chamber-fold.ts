// Folds a chamber's state from an untrusted service's lines, within a size limit.
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import type { ReadLimits } from '../reading/limits.ts';
import type { ChamberEvent } from '../vocabulary/events.ts';
import { ClientError } from './error.ts';

/** The memory that an event takes in addition to its payload. */
const EVENT_CHARS = 200;

export class ChamberFold {
  state: ChamberState | null = null;
  readonly #charsMax: number;
  #chars = 0;

  constructor({ stateCharsMax }: Pick<ReadLimits, 'stateCharsMax'>) {
    this.#charsMax = stateCharsMax;
  }

  /**
   * Returns the state after the event. Throws CLIENT_ERR_TOO_LARGE if the state exceeds stateCharsMax, and CLIENT_ERR_CHAIN for an event
   * that can't follow the earlier ones, such as a pass in a chamber without members.
   */
  take(event: ChamberEvent): ChamberState {
    const hasNoStance = event.type === 'chamber.debated' && event.payload.stance === undefined;
    const isKept = !hasNoStance && event.type !== 'chamber.passed';
    if (isKept) this.#chars += EVENT_CHARS + JSON.stringify(event.payload).length;
    if (this.#chars > this.#charsMax) {
      const problem = `the state of chamber ${event.chamberId} is larger than ${this.#charsMax} characters`;
      throw new ClientError('CLIENT_ERR_TOO_LARGE', `${problem}: its log is not read further`);
    }
    try {
      this.state = evolveChamber(this.state, event);
    } catch (cause) {
      const problem = `event ${event.eventId} can’t follow: ${(cause as Error).message}`;
      throw new ClientError('CLIENT_ERR_CHAIN', `the log is broken: ${problem}`, { cause });
    }
    return this.state;
  }
}
