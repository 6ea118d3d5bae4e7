// Reports conditions that do not make a call fail, once when each begins.

export class Warnings {
  readonly #report: (warning: string) => void;
  readonly #lasting = new Set<string>();

  constructor(report: (warning: string) => void) {
    this.#report = report;
  }

  /** Reports the warning unless the condition has already begun and `end` has not been called since. */
  begin(condition: string, warning: string): void {
    if (this.#lasting.has(condition)) return;
    this.#lasting.add(condition);
    this.#report(warning);
  }

  end(condition: string): void {
    this.#lasting.delete(condition);
  }
}
