// The operator's limits on a model's moves while the server runs.
import { ClientError } from '../client/error.ts';

export interface AllowanceLimits {
  /** Moves of any kind; Infinity by default. */
  readonly movesMax?: number | undefined;
  /** Chambers that the model may open; Infinity by default. */
  readonly openMax?: number | undefined;
}

export class Allowance {
  readonly #movesMax: number;
  readonly #openMax: number;
  #moves = 0;
  #opened = 0;

  constructor({ movesMax = Number.POSITIVE_INFINITY, openMax = Number.POSITIVE_INFINITY }: AllowanceLimits = {}) {
    this.#movesMax = movesMax;
    this.#openMax = openMax;
  }

  /** Throws CLIENT_ERR_LIMIT if the limits do not allow another call of the tool. */
  require(tool: string): void {
    const problem = (option: string, max: number) =>
      new ClientError('CLIENT_ERR_LIMIT', `the operator’s limit of ${max} (${option}) is reached`);
    if (this.#moves >= this.#movesMax) throw problem('--moves', this.#movesMax);
    if (tool === 'open' && this.#opened >= this.#openMax) throw problem('--max-open', this.#openMax);
  }

  count(tool: string): void {
    this.#moves++;
    if (tool === 'open') this.#opened++;
  }
}
