// Damage of the store: the damaged streams, and the errors that report them.
import { crc32 } from 'node:zlib';
import { HASH_BYTES, type NodeRef } from '../crypto/merkle.ts';
import type { StreamId } from './stream-id.ts';

/** The store has lost or changed written data: the process must stop. */
export class LogCorruption extends Error {
  override readonly name = 'LogCorruption';
}

/** A stream's stored bytes fail their checksum: its reads fail, the process and the other streams continue. */
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

/** The streams in which reads have met damage since the start. */
export class Damages {
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

  note(stream: StreamId, eventId: number, problem: string): StreamDamaged {
    const damage = new StreamDamaged(stream, eventId, problem);
    if (!this.#met.has(stream)) {
      this.#met.set(stream, damage);
      this.size = this.#met.size;
      this.#onDamage(damage);
    }
    return damage;
  }

  /** Throws StreamDamaged, and notes it, if the nodes of the event fail their checksum. */
  nodeIn(chamberId: number, { eventId, level }: NodeRef, { nodes, nodes_crc }: StoredNodes): Uint8Array {
    const node = nodes?.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
    if (nodes && matchesChecksum(nodes, nodes_crc) && node?.length === HASH_BYTES) return node;
    throw this.note(chamberId, eventId, `the tree nodes of event ${eventId} fail their checksum`);
  }
}

/** Nodes of an event and their CRC-32. */
export interface StoredNodes {
  readonly nodes: Buffer | null;
  readonly nodes_crc: number | string | null;
}

/** A checksum that another program wrote may be a text. */
export function matchesChecksum(bytes: Buffer, checksum: number | string | null): boolean {
  return checksum !== null && Number(checksum) === crc32(bytes);
}
