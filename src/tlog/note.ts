// Signed notes (c2sp.org/signed-note): a text, and lines of signatures over it. Notes are untrusted: malformed ones parse to undefined.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { base64 } from '@scure/base';
import { weaknessOf } from '../crypto/did-key.ts';
import { isSignedBy, toVerifyingKey, type VerifyingKey } from '../crypto/verify.ts';

/** `ed25519` keys belong to logs, `cosignature` keys to witnesses (c2sp.org/tlog-cosignature). */
export const NOTE_KEY_TYPES = { ed25519: 0x01, cosignature: 0x04 } as const;
export type NoteKeyType = (typeof NOTE_KEY_TYPES)[keyof typeof NOTE_KEY_TYPES];

/** The specification requires at least 16. */
export const NOTE_SIGNATURES_MAX = 100;
export const NOTE_BYTES_MAX = 65_536;

const KEY_ID_BYTES = 4;
const TIMESTAMP_BYTES = 8;
const SIGNATURE_BYTES = 64;
const EM_DASH = '\u2014';
const KEY_NAME = /^[^\s\u0085+]+$/u;
const SIGNATURE_LINE = /^\u2014 ([^\s\u0085+]+) ([A-Za-z0-9+/]+={0,2})$/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the specification forbids them.
const CONTROL_CHARACTER = /[\u0000-\u0009\u000b-\u001f]/;

/** A public key that signs notes under a name. */
export interface NoteKey {
  readonly name: string;
  readonly type: NoteKeyType;
  readonly publicKey: Uint8Array;
  /** 8 hex digits. Name and key id identify the key in a signature line. */
  readonly keyId: string;
  readonly verifying: () => VerifyingKey;
}

export interface NoteSignature {
  readonly name: string;
  readonly keyId: string;
  /** Without the key id. */
  readonly bytes: Uint8Array;
}

export interface SignedNote {
  /** The text with its final newline. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** The public key must have passed weaknessOf. Throws for an invalid name. */
export function toNoteKey(name: string, type: NoteKeyType, publicKey: Uint8Array): NoteKey {
  if (!isKeyName(name)) throw new RangeError('a key name must not contain spaces or plus signs');
  const identity = concatBytes(utf8ToBytes(`${name}\n`), Uint8Array.of(type), publicKey);
  const keyId = bytesToHex(sha256(identity).subarray(0, KEY_ID_BYTES));
  let verifying: VerifyingKey | undefined;
  return {
    name,
    type,
    publicKey,
    keyId,
    verifying: () => {
      verifying ??= toVerifyingKey(publicKey);
      return verifying;
    },
  };
}

/** `<name>+<key id>+<base64 of type and public key>`. */
export function formatVerifierKey({ name, keyId, type, publicKey }: NoteKey): string {
  return `${name}+${keyId}+${base64.encode(Uint8Array.of(type, ...publicKey))}`;
}

export function parseVerifierKey(text: string): NoteKey | undefined {
  const [, name = '', keyId, encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/u.exec(text) ?? [];
  const [type, ...publicKey] = decodeBase64(encoded) ?? [];
  if (!isKeyName(name) || !isKeyType(type) || weaknessOf(Uint8Array.from(publicKey)) !== undefined) return undefined;
  const key = toNoteKey(name, type, Uint8Array.from(publicKey));
  return key.keyId === keyId ? key : undefined;
}

export function isKeyName(name: string): boolean {
  return name.isWellFormed() && KEY_NAME.test(name) && !CONTROL_CHARACTER.test(name);
}

function isKeyType(type: number | undefined): type is NoteKeyType {
  return type === NOTE_KEY_TYPES.ed25519 || type === NOTE_KEY_TYPES.cosignature;
}

/** The last empty line separates text and signatures. */
export function parseNote(note: string): SignedNote | undefined {
  if (note.length > NOTE_BYTES_MAX || !note.isWellFormed() || CONTROL_CHARACTER.test(note)) return undefined;
  const end = note.lastIndexOf('\n\n');
  const text = note.slice(0, end + 1);
  const signatures = end < 1 ? undefined : parseSignatureLines(note.slice(end + 2));
  return signatures && { text, signatures };
}

/** Requires at least one line, each with its newline. */
export function parseSignatureLines(lines: string): readonly NoteSignature[] | undefined {
  if (lines.length > NOTE_BYTES_MAX || !lines.endsWith('\n')) return undefined;
  const parsed = lines.slice(0, -1).split('\n').map(parseSignatureLine);
  if (parsed.length > NOTE_SIGNATURES_MAX) return undefined;
  const signatures = parsed.filter((signature) => signature !== undefined);
  return signatures.length === parsed.length ? signatures : undefined;
}

function parseSignatureLine(line: string): NoteSignature | undefined {
  const [, name = '', encoded = ''] = SIGNATURE_LINE.exec(line) ?? [];
  const bytes = decodeBase64(encoded);
  if (!isKeyName(name) || bytes === undefined || bytes.length <= KEY_ID_BYTES) return undefined;
  return { name, keyId: bytesToHex(bytes.subarray(0, KEY_ID_BYTES)), bytes: bytes.subarray(KEY_ID_BYTES) };
}

export function formatNote({ text, signatures }: SignedNote): string {
  return `${text}\n${signatures.map(formatSignatureLine).join('')}`;
}

/** Includes the newline. */
export function formatSignatureLine({ name, keyId, bytes }: NoteSignature): string {
  return `${EM_DASH} ${name} ${base64.encode(concatBytes(hexToBytes(keyId), bytes))}\n`;
}

/** Returns the 64 bytes of an Ed25519 signature (RFC 8032). */
export type Sign = (message: Uint8Array) => Uint8Array;

export function signNote(text: string, { name, keyId }: NoteKey, sign: Sign): NoteSignature {
  return { name, keyId, bytes: sign(utf8ToBytes(text)) };
}

/** Returns the signatures by known keys; undefined if any of them is invalid, or there are none. */
export function openNote(note: SignedNote, keys: readonly NoteKey[]): readonly NoteSignature[] | undefined {
  const known: NoteSignature[] = [];
  for (const signature of note.signatures) {
    const key = keys.find(({ name, keyId }) => name === signature.name && keyId === signature.keyId);
    if (key === undefined) continue;
    if (!isNoteSignature(note.text, key, signature)) return undefined;
    known.push(signature);
  }
  return known.length > 0 ? known : undefined;
}

/** Returns the key's valid signature; undefined if there is none. */
export function signatureBy(key: NoteKey, { text, signatures }: SignedNote): NoteSignature | undefined {
  return signatures.find((signature) => {
    return signature.name === key.name && signature.keyId === key.keyId && isNoteSignature(text, key, signature);
  });
}

export function isNoteSignature(text: string, key: NoteKey, { bytes }: NoteSignature): boolean {
  if (key.type === NOTE_KEY_TYPES.ed25519) return isSignedBy(key.verifying(), utf8ToBytes(text), bytes);
  const cosignature = parseCosignature(bytes);
  if (cosignature === undefined) return false;
  return isSignedBy(key.verifying(), cosignedMessage(text, cosignature.at), cosignature.signature);
}

interface Cosignature {
  /** When the witness cosigned, in seconds since 1970. */
  readonly at: bigint;
  readonly signature: Uint8Array;
}

/** The bytes of a witness's signature (c2sp.org/tlog-cosignature): a timestamp, then an Ed25519 signature over cosignedMessage. */
export function parseCosignature(bytes: Uint8Array): Cosignature | undefined {
  if (bytes.length !== TIMESTAMP_BYTES + SIGNATURE_BYTES) return undefined;
  const at = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  return at < 2n ** 63n ? { at, signature: bytes.subarray(TIMESTAMP_BYTES) } : undefined;
}

export function cosignedMessage(text: string, at: bigint): Uint8Array {
  return utf8ToBytes(`cosignature/v1\ntime ${at}\n${text}`);
}

/** Decodes padded, canonical base64. */
export function decodeBase64(text: string): Uint8Array | undefined {
  try {
    return base64.decode(text);
  } catch {
    return undefined;
  }
}
