// A line as it is stored, checked against its checksum.
import type { Damages, StreamDamaged } from '../damage.ts';
import { isAsWritten } from '../damage.ts';
import type { StreamId } from '../stream-id.ts';

export interface StoredLine {
  readonly stream: string | number;
  readonly event_id: number;
  readonly line: Buffer;
  readonly line_crc: number | null;
}

/** The stream that a column has: the id of a chamber, which may be in decimal text, or a DID. */
export function toStream(stored: string | number): StreamId {
  return typeof stored === 'string' && /^\d+$/.test(stored) ? Number(stored) : stored;
}

/** The damage, if the line fails its checksum. */
export function damageIn(
  damages: Damages,
  { stream, event_id, line, line_crc }: StoredLine,
): StreamDamaged | undefined {
  if (isAsWritten(line, line_crc)) return undefined;
  return damages.note(toStream(stream), event_id, `event ${event_id} fails its checksum`);
}
