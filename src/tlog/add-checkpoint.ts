// The request to a witness (c2sp.org/tlog-witness, add-checkpoint).
import { base64 } from '@scure/base';
import { parseCount } from './checkpoint.ts';
import { NOTE_BYTES_MAX } from './note.ts';
import { parseHashes } from './proof.ts';

/** The content type of a 409 with the size of the last cosigned checkpoint. */
export const TLOG_SIZE = 'text/x.tlog.size';
/** A note, and at most 63 hashes before it. */
export const ADD_CHECKPOINT_BYTES_MAX = NOTE_BYTES_MAX + 8_192;

export interface AddCheckpoint {
  /** The size of the checkpoint that the proof begins at. */
  readonly oldSize: number;
  readonly proof: readonly Uint8Array[];
  /** The signed note. */
  readonly note: string;
}

export function formatAddCheckpoint({ oldSize, proof, note }: AddCheckpoint): string {
  return [`old ${oldSize}`, ...proof.map((hash) => base64.encode(hash)), '', note].join('\n');
}

export function parseAddCheckpoint(text: string): AddCheckpoint | undefined {
  const end = text.indexOf('\n\n');
  const [first = '', ...lines] = text.slice(0, Math.max(end, 0)).split('\n');
  const oldSize = first.startsWith('old ') ? parseCount(first.slice('old '.length)) : undefined;
  const proof = parseHashes(lines);
  return oldSize === undefined || proof === undefined ? undefined : { oldSize, proof, note: text.slice(end + 2) };
}
