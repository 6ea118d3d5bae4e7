// Parses a service's key directory, and decides which keys may sign a receipt.
import { base64urlnopad } from '@scure/base';
import { weaknessOf } from './did-key.ts';
import { thumbprintOf } from './jwk.ts';
import type { Terms } from './receipt.ts';
import { toVerifyingKey, type VerifyingKey } from './verify.ts';

export const DIRECTORY_PATH = '/.well-known/http-message-signatures-directory';

export interface DirectoryKey {
  readonly publicKey: Uint8Array;
  readonly verifying: VerifyingKey;
  /** Start of validity in Unix seconds; undefined if the directory omits it. */
  readonly nbf: number | undefined;
  /** End of validity in Unix seconds; undefined while the key is in use. */
  readonly exp: number | undefined;
}

/** By thumbprint. */
export type KeyDirectory = ReadonlyMap<string, DirectoryKey>;

const KEYS_MAX = 1_000;

/** Returns the receipts keys in a service's response. The response is untrusted and may have any form. */
export function parseDirectory(response: unknown): KeyDirectory {
  const { keys } = Object(response) as { readonly keys?: unknown };
  const found = new Map<string, DirectoryKey>();
  for (const key of Array.isArray(keys) ? keys.slice(0, KEYS_MAX) : []) {
    const { kty, crv, x, purpose, nbf, exp } = (key ?? {}) as Readonly<Record<string, unknown>>;
    if (kty !== 'OKP' || crv !== 'Ed25519' || purpose !== 'receipts' || typeof x !== 'string') continue;
    const publicKey = decodeKey(x);
    if (publicKey === undefined) continue;
    const verifying = toVerifyingKey(publicKey);
    found.set(thumbprintOf(publicKey), { publicKey, verifying, nbf: seconds(nbf), exp: seconds(exp) });
  }
  return found;
}

function seconds(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

export const NOT_IN_DIRECTORY = 'its key is not in the key directory of the service';

/** Returns the problem with a receipt's key. The key must be the chamber's pinned key, or a different one after that key has expired. */
export function keyProblem(
  { keyid, created }: Terms,
  pinned: string | undefined,
  directory: KeyDirectory,
): string | undefined {
  const endOf = (thumbprint = '') => directory.get(thumbprint)?.exp ?? Number.POSITIVE_INFINITY;
  // The directory is unsigned, so a service can't withdraw a pinned key by removing it.
  if (keyid !== pinned && !directory.has(keyid)) return NOT_IN_DIRECTORY;
  if (created >= endOf(keyid)) return 'its key had expired';
  const isRight = pinned === undefined || pinned === keyid || created >= endOf(pinned);
  return isRight
    ? undefined
    : 'it is not signed with the key that its chamber pins: a service that has lost its keys signs with new ones';
}

/** Decodes a 32-byte public key in base64url; returns undefined for a malformed or weak key. */
export function decodeKey(x: string): Uint8Array | undefined {
  try {
    const publicKey = base64urlnopad.decode(x);
    return weaknessOf(publicKey) === undefined ? publicKey : undefined;
  } catch {
    return undefined;
  }
}
