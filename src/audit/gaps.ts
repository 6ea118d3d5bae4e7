// Event ids that should have come and have not, as ranges: an id of a million in a short log costs nothing.

export interface IdRange {
  readonly from: number;
  /** Inclusive. */
  readonly to: number;
}

export class Gaps {
  #ranges: IdRange[] = [];

  add(from: number, to: number): void {
    this.#ranges.push({ from, to });
  }

  /** Takes an id that came late out of its gap; false when it is in none. */
  fill(eventId: number): boolean {
    const gap = this.#ranges.find(({ from, to }) => from <= eventId && eventId <= to);
    if (gap === undefined) return false;
    this.#ranges = this.#ranges.flatMap((range) => (range === gap ? without(range, eventId) : [range]));
    return true;
  }

  ranges(): readonly IdRange[] {
    return this.#ranges;
  }
}

function without({ from, to }: IdRange, eventId: number): IdRange[] {
  return [
    { from, to: eventId - 1 },
    { from: eventId + 1, to },
  ].filter((range) => range.from <= range.to);
}
