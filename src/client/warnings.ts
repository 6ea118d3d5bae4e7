// Conditions that fail no call: each is reported when it begins, and once more if it begins again.

export class Warnings {
  readonly #report: (warning: string) => void;
  readonly #lasting = new Set<string>();

  constructor(report: (warning: string) => void) {
    this.#report = report;
  }

  /** The condition lasts until it is said to have ended. */
  begin(condition: string, warning: string): void {
    if (this.#lasting.has(condition)) return;
    this.#lasting.add(condition);
    this.#report(warning);
  }

  end(condition: string): void {
    this.#lasting.delete(condition);
  }
}
