// All lines must be of one chamber: the one asked for, or that of most lines.
import type { Ledger } from './ledger.ts';

const IDS_NAMED_MAX = 100;

interface Group {
  count: number;
  readonly eventIds: number[];
}

export class ChamberIds {
  readonly #ledger: Ledger;
  readonly #expected: number | undefined;
  readonly #groups = new Map<number, Group>();

  constructor(ledger: Ledger, expected: number | undefined) {
    this.#ledger = ledger;
    this.#expected = expected;
  }

  take(chamberId: number, eventId: number): void {
    const group = this.#groups.get(chamberId) ?? { count: 0, eventIds: [] };
    this.#groups.set(chamberId, group);
    group.count++;
    if (group.eventIds.length < IDS_NAMED_MAX) group.eventIds.push(eventId);
  }

  conclude(): void {
    const [most] = [...this.#groups].sort(([, a], [, b]) => b.count - a.count);
    const expected = this.#expected ?? most?.[0];
    for (const [chamberId, { count, eventIds }] of this.#groups) {
      const lines = count === 1 ? `event ${eventIds[0]} is` : `${count} lines are`;
      const sentence = `${lines} of chamber ${chamberId}, not of chamber ${expected}`;
      this.#ledger.judge('chamber', chamberId === expected, { eventIds, sentence });
    }
  }
}
