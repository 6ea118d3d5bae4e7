// Damage of the store: what is known of it, and the errors that report it.
import type { StreamId } from './stream-id.ts';

/** The store no longer holds what was written: the process must stop. */
export class LogCorruption extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogCorruption';
  }
}

/** A stream's stored bytes are not the written ones: its reads fail, the process and the other streams continue. */
export class StreamDamaged extends Error {
  readonly stream: StreamId;
  /** Null if no single event is damaged. */
  readonly eventId: number | null;

  constructor(stream: StreamId, eventId: number | null, problem: string) {
    super(`${typeof stream === 'number' ? 'chamber' : 'account'} ${stream} is damaged: ${problem}`);
    this.name = 'StreamDamaged';
    this.stream = stream;
    this.eventId = eventId;
  }
}

/** The streams in which damage was met since the start. */
export class Damages {
  /** How many there are. */
  size = 0;
  readonly #met = new Map<StreamId, StreamDamaged>();
  readonly #onDamage: (damage: StreamDamaged) => void;

  /** `onDamage` is called once for each stream. */
  constructor(onDamage: (damage: StreamDamaged) => void = () => {}) {
    this.#onDamage = onDamage;
  }

  of(stream: StreamId): StreamDamaged | undefined {
    return this.#met.get(stream);
  }

  /** Notes the damage, and returns it. */
  note(damage: StreamDamaged): StreamDamaged {
    if (!this.#met.has(damage.stream)) {
      this.#met.set(damage.stream, damage);
      this.size = this.#met.size;
      this.#onDamage(damage);
    }
    return damage;
  }
}
