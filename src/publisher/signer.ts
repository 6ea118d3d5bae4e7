// Signs checkpoints in the name of the log.
import { signWith } from '../keys/private-key.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import { NOTE_KEY_TYPES, type NoteKey, type NoteSignature, signNote, toNoteKey } from '../tlog/note.ts';

export interface CheckpointSigner {
  readonly origin: string;
  readonly sign: (text: string) => NoteSignature;
}

export function checkpointSigner(origin: string, key: Pick<ServiceKey, 'seed' | 'publicKey'>): CheckpointSigner {
  const noteKey = checkpointKey(origin, key);
  const sign = signWith(key.seed);
  return { origin, sign: (text) => signNote(text, noteKey, sign) };
}

export function checkpointKey(origin: string, { publicKey }: Pick<ServiceKey, 'publicKey'>): NoteKey {
  return toNoteKey(origin, NOTE_KEY_TYPES.ed25519, publicKey);
}
