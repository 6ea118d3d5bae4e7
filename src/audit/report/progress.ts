// Shows progress on standard error if it is a terminal: a bar, the rate and the remaining time.
import { withCommas } from '../../vocabulary/values.ts';

const BAR_CHARS = 30;
const REDRAW_MILLIS = 100;

export class Progress {
  readonly #isShown = process.stderr.isTTY === true;
  #drawnAt = 0;
  #startedAt: number | undefined;

  /** `share` of the input is between 0 and 1; undefined if the input's size is unknown. */
  readonly update = (lines: number, share: number | undefined): void => {
    const now = performance.now();
    this.#startedAt ??= now;
    if (!this.#isShown || now - this.#drawnAt < REDRAW_MILLIS) return;
    this.#drawnAt = now;
    process.stderr.write(`\r\u001b[K${progressText(lines, share, (now - this.#startedAt) / 1000)}`);
  };

  clear(): void {
    if (this.#isShown && this.#drawnAt > 0) process.stderr.write('\r\u001b[K');
    this.#drawnAt = 0;
  }
}

export function progressText(lines: number, share: number | undefined, seconds: number): string {
  const rate = seconds > 0 ? `, ${withCommas(Math.round(lines / seconds))} a second` : '';
  const count = `${withCommas(lines)} events${rate}`;
  if (share === undefined || share === 0) return count;
  const done = Math.min(1, share);
  return `${bar(done)} ${count}, ${timeOf((seconds * (1 - done)) / done)} left`;
}

function bar(share: number): string {
  const done = '='.repeat(Math.round(share * BAR_CHARS));
  return `[${done.padEnd(BAR_CHARS)}] ${String(Math.floor(share * 100)).padStart(3)} %`;
}

const MINUTE_SECONDS = 60;

function timeOf(seconds: number): string {
  const rounded = Math.ceil(seconds);
  if (rounded < MINUTE_SECONDS) return `${rounded} s`;
  return `${Math.floor(rounded / MINUTE_SECONDS)} min ${rounded % MINUTE_SECONDS} s`;
}
