// Signs checkpoints in the name of the log.
import { createPrivateKey, sign as signEd25519 } from 'node:crypto';
import type { ServiceKey } from '../keys/service-keys.ts';
import { NOTE_KEY_TYPES, type NoteKey, type NoteSignature, type Sign, signNote, toNoteKey } from '../tlog/note.ts';

export interface CheckpointSigner {
  readonly origin: string;
  readonly sign: (text: string) => NoteSignature;
}

export function checkpointSigner(origin: string, key: Pick<ServiceKey, 'seed' | 'publicKey'>): CheckpointSigner {
  const noteKey = checkpointKey(origin, key);
  const sign = ed25519(key.seed);
  return { origin, sign: (text) => signNote(text, noteKey, sign) };
}

export function checkpointKey(origin: string, { publicKey }: Pick<ServiceKey, 'publicKey'>): NoteKey {
  return toNoteKey(origin, NOTE_KEY_TYPES.ed25519, publicKey);
}

/** RFC 8410: the bytes before the 32 bytes of an Ed25519 private key. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The seed has 32 bytes (RFC 8032). */
export function ed25519(seed: Uint8Array): Sign {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
  return (message) => signEd25519(null, message, key);
}
