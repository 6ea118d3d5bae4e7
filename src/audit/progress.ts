// A progress bar on standard error, where that is a terminal.

const BAR_CHARS = 30;
const REDRAW_MILLIS = 100;

export class Progress {
  readonly #isShown = process.stderr.isTTY === true;
  #drawnAt = 0;

  /** `share` of the whole from 0 to 1; undefined where the whole is not known. */
  update(lines: number, share: number | undefined): void {
    const now = performance.now();
    if (!this.#isShown || now - this.#drawnAt < REDRAW_MILLIS) return;
    this.#drawnAt = now;
    const count = `${lines.toLocaleString('en')} events`;
    process.stderr.write(`\r\u001b[K${share === undefined ? count : `${bar(share)} ${count}`}`);
  }

  clear(): void {
    if (this.#isShown && this.#drawnAt > 0) process.stderr.write('\r\u001b[K');
    this.#drawnAt = 0;
  }
}

function bar(share: number): string {
  const done = Math.round(Math.min(1, share) * BAR_CHARS);
  return `[${'='.repeat(done)}${' '.repeat(BAR_CHARS - done)}] ${String(Math.floor(Math.min(1, share) * 100)).padStart(3)} %`;
}
