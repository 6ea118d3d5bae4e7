// Conditions that fail no call. Each is reported once when it begins.

export class Warnings {
  readonly #report: (warning: string) => void;
  readonly #lasting = new Set<string>();

  constructor(report: (warning: string) => void) {
    this.#report = report;
  }

  /** The condition lasts until `end` is called. */
  begin(condition: string, warning: string): void {
    if (this.#lasting.has(condition)) return;
    this.#lasting.add(condition);
    this.#report(warning);
  }

  end(condition: string): void {
    this.#lasting.delete(condition);
  }
}
