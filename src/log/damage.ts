// Damaged streams, and the errors that report damage.
import { crc32 } from 'node:zlib';
import { HASH_BYTES, type NodeRef } from '../crypto/merkle.ts';
import type { StreamId } from './stream-id.ts';

/** The store has lost or changed written data, so the process must stop. */
export class LogCorruption extends Error {
  override readonly name = 'LogCorruption';
}

/** A stream's stored bytes fail their checksum. Reads of the stream fail; the process and the other streams continue. */
export class StreamDamaged extends Error {
  readonly stream: StreamId;
  /** Null if the damage is not in a single event. */
  readonly eventId: number | null;

  constructor(stream: StreamId, eventId: number | null, problem: string) {
    super(`${typeof stream === 'number' ? 'chamber' : 'account'} ${stream} is damaged: ${problem}`);
    this.name = 'StreamDamaged';
    this.stream = stream;
    this.eventId = eventId;
  }
}

/** The streams in which reads have found damage since the start. */
export class DamagedStreams {
  size = 0;
  readonly #byStream = new Map<StreamId, StreamDamaged>();
  readonly #onDamage: (damage: StreamDamaged) => void;

  /** `onDamage` is called once for each stream. */
  constructor(onDamage: (damage: StreamDamaged) => void = () => {}) {
    this.#onDamage = onDamage;
  }

  get(stream: StreamId): StreamDamaged | undefined {
    return this.#byStream.get(stream);
  }

  /** Returns the error for the caller to throw. */
  record(stream: StreamId, eventId: number, problem: string): StreamDamaged {
    const damage = new StreamDamaged(stream, eventId, problem);
    if (!this.#byStream.has(stream)) {
      this.#byStream.set(stream, damage);
      this.size = this.#byStream.size;
      this.#onDamage(damage);
    }
    return damage;
  }

  /** Records and throws StreamDamaged if the nodes of the event fail their checksum. */
  requireNode(chamberId: number, { eventId, level }: NodeRef, { nodes, nodes_crc }: StoredNodes): Uint8Array {
    const node = nodes?.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
    if (nodes && matchesChecksum(nodes, nodes_crc) && node?.length === HASH_BYTES) return node;
    throw this.record(chamberId, eventId, `the tree nodes of event ${eventId} fail their checksum`);
  }
}

/** The tree nodes of an event and their CRC-32. */
export interface StoredNodes {
  readonly nodes: Buffer | null;
  readonly nodes_crc: number | string | null;
}

/** A checksum that another program wrote may be text. */
export function matchesChecksum(bytes: Buffer, checksum: number | string | null): boolean {
  return checksum !== null && Number(checksum) === crc32(bytes);
}
