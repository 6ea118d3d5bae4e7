// A small forum in memory for the relayer: stores chambers as lists of events, and folds and hashes them like the service.
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { listingsOf } from '../../projections/listings.ts';
import { isClosed } from '../../projections/phase.ts';
import { type Accumulator, appendLeaf, EMPTY_TREE, leafHash, rootOf } from '../../src/crypto/merkle.ts';
import { decideServiceFact } from '../../src/moves/service-facts.ts';
import type { ClosedChamber, RelayerForum } from '../../src/relayer/context.ts';
import {
  type ChamberEvent,
  isMove,
  type MoveFact,
  type ServiceEvent,
  type ServiceFact,
  toLine,
} from '../../src/vocabulary/events.ts';
import type { ServicePayloads } from '../../src/vocabulary/service-payloads.ts';
import { type Hex, NO_PREVIOUS, toHex, toTimestamp } from '../../src/vocabulary/values.ts';

export class MemoryForum implements RelayerForum {
  readonly events = new Map<number, ChamberEvent[]>();
  readonly #states = new Map<number, ChamberState>();
  readonly #trees = new Map<number, Accumulator>();
  /** How many milliseconds the forum's clock is ahead of real time. */
  ahead = 0;
  /** Called before each append. An error that it throws makes the append fail. */
  beforeRecord: (fact: ServiceFact) => void = () => {};

  lease(): string {
    return 'sole';
  }

  now(): number {
    return Date.now() + this.ahead;
  }

  async unsettledChambers(limit: number): Promise<readonly number[]> {
    return this.#closed({ isSettled: false }).slice(0, limit);
  }

  async settledChambers(limit: number): Promise<readonly number[]> {
    return this.#closed({ isSettled: true }).reverse().slice(0, limit);
  }

  async chamber(chamberId: number): Promise<ClosedChamber | undefined> {
    return this.events.has(chamberId) ? { state: this.state(chamberId), root: this.root(chamberId) } : undefined;
  }

  async record(chamberId: number, fact: ServiceFact): Promise<void> {
    this.beforeRecord(fact);
    decideServiceFact(this.state(chamberId), fact, this.now());
    this.#append(chamberId, { ...fact, did: null });
  }

  move(chamberId: number, did: string, fact: MoveFact): void {
    this.#append(chamberId, { ...fact, did });
  }

  state(chamberId: number): ChamberState {
    const state = this.#states.get(chamberId);
    if (state === undefined) throw new Error(`no chamber ${chamberId}`);
    return state;
  }

  root(chamberId: number): Hex {
    return toHex(rootOf(this.#trees.get(chamberId) ?? EMPTY_TREE));
  }

  /** Returns the payloads of all service events of a type, in order. */
  facts<Type extends ServiceEvent['type']>(type: Type): readonly ServicePayloads[Type][] {
    const isOfType = (event: ChamberEvent): event is Extract<ServiceEvent, { type: Type }> => event.type === type;
    return [...this.events.values()]
      .flat()
      .filter(isOfType)
      .map(({ payload }) => payload as ServicePayloads[Type]);
  }

  #append(chamberId: number, fact: (MoveFact & { did: string }) | (ServiceFact & { did: null })): void {
    const log = this.events.get(chamberId) ?? [];
    const last = log.at(-1);
    const prev = last === undefined ? NO_PREVIOUS : toHex(leafHash(Buffer.from(toLine(last))));
    const common = { eventId: log.length + 1, chamberId, ts: toTimestamp(Date.now()), prev, request: null };
    const event = { ...common, ...fact } as ChamberEvent;
    this.events.set(chamberId, [...log, event]);
    this.#states.set(chamberId, evolveChamber(this.#states.get(chamberId) ?? null, event));
    const tree = this.#trees.get(chamberId) ?? EMPTY_TREE;
    if (isMove(event)) this.#trees.set(chamberId, appendLeaf(tree, leafHash(Buffer.from(toLine(event)))).tree);
  }

  #closed(wanted: { readonly isSettled: boolean }): number[] {
    const closed = [...this.events.keys()].filter((id) => isClosed(this.state(id), this.now()));
    return closed.filter((id) => this.#isSettled(id) === wanted.isSettled);
  }

  #isSettled(chamberId: number): boolean {
    return listingsOf(null, this.state(chamberId)).some((row) => row.kind === 'chamber' && row.isSettled);
  }
}
