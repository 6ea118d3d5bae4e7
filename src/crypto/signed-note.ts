// Signed notes (C2SP signed-note): the names of their keys.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { base64 } from '@scure/base';

/** Of Ed25519. */
const SIGNATURE_TYPE = Uint8Array.of(0x01);
const KEY_ID_BYTES = 4;

/** The key's id: the first bytes of SHA-256 over its name, a line break, its type and the key. */
export function keyIdOf(name: string, publicKey: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8ToBytes(`${name}\n`), SIGNATURE_TYPE, publicKey)).subarray(0, KEY_ID_BYTES);
}

/** `<name>+<id in hex>+<base64 of type and key>`, which verifiers of notes take. */
export function verifierKey(name: string, publicKey: Uint8Array): string {
  const key = base64.encode(concatBytes(SIGNATURE_TYPE, publicKey));
  return `${name}+${bytesToHex(keyIdOf(name, publicKey))}+${key}`;
}
