// The timestamped signature that a witness adds to a checkpoint (c2sp.org/tlog-cosignature): what it signs, and its bytes. Whether one
// is valid for a note is signatureBy of note.ts.
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';

const TIMESTAMP_BYTES = 8;
const SIGNATURE_BYTES = 64;

export interface Cosignature {
  /** When the witness made its statement, in seconds since 1970. */
  readonly at: bigint;
  /** Over cosignedMessage: RFC 8032, 64 bytes. */
  readonly signature: Uint8Array;
}

export function cosignedMessage(text: string, at: bigint): Uint8Array {
  return utf8ToBytes(`cosignature/v1\ntime ${at}\n${text}`);
}

/** The bytes that follow the key id in a signature line. */
export function formatCosignature({ at, signature }: Cosignature): Uint8Array {
  const timestamp = new Uint8Array(TIMESTAMP_BYTES);
  new DataView(timestamp.buffer).setBigUint64(0, at);
  return concatBytes(timestamp, signature);
}

export function parseCosignature(bytes: Uint8Array): Cosignature | undefined {
  if (bytes.length !== TIMESTAMP_BYTES + SIGNATURE_BYTES) return undefined;
  const at = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  return at < 2n ** 63n ? { at, signature: bytes.subarray(TIMESTAMP_BYTES) } : undefined;
}
