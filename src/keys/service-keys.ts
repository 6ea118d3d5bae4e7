// The keys with which a service signs one log's receipts and checkpoints. Former keys stay in the list, so that clients can verify old
// signatures. This module is pure: key-file.ts reads and writes the file.
import * as v from 'valibot';
import { type Jwk, thumbprintOf, toJwk } from '../crypto/jwk.ts';
import { timestamp } from '../vocabulary/schemas.ts';
import { fromHex, instantOf, LOG_ID, type Millis, type PinnedKeys, toTimestamp } from '../vocabulary/values.ts';
import { publicKeyOf } from './private-key.ts';

export const KEY_USES = ['receipts', 'checkpoints'] as const;
export type KeyUse = (typeof KEY_USES)[number];

const entry = v.strictObject({
  use: v.picklist(KEY_USES),
  seed: v.pipe(v.string(), v.regex(/^0x[0-9a-f]{64}$/)),
  from: timestamp,
  until: v.nullable(timestamp),
});

/** E.g. `{ "logId": "…", "keys": [{ "use": "receipts", "seed": "0x…", "from": "…Z", "until": null }, …] }`. */
const keyFile = v.strictObject({ logId: v.pipe(v.string(), v.regex(LOG_ID)), keys: v.array(entry) });
export type KeyFile = v.InferOutput<typeof keyFile>;

export interface ServiceKey {
  readonly use: KeyUse;
  /** 32 bytes (RFC 8032). */
  readonly seed: Uint8Array;
  readonly publicKey: Uint8Array;
  /** The keyid of the key's signatures. */
  readonly thumbprint: string;
  readonly from: Millis;
  /** The end of the key's validity; null for the newest key of its use. */
  readonly until: Millis | null;
}

/** A public key in the directory. */
export interface PublishedKey extends Jwk {
  readonly kid: string;
  readonly alg: 'Ed25519';
  readonly use: 'sig';
  readonly purpose: KeyUse;
  /** The beginning of the key's validity, in Unix seconds. */
  readonly nbf: number;
  /** The end of the key's validity, in Unix seconds. */
  readonly exp?: number;
}

export class ServiceKeys {
  readonly logId: string;
  readonly #keys: readonly ServiceKey[];

  constructor(logId: string, keys: readonly ServiceKey[]) {
    this.logId = logId;
    this.#keys = keys;
  }

  /** Includes former keys. */
  all(use: KeyUse): readonly ServiceKey[] {
    return this.#keys.filter((key) => key.use === use);
  }

  /** Sorted. */
  get thumbprints(): readonly string[] {
    return this.#keys.map(({ thumbprint }) => thumbprint).sort();
  }

  /** Whether chambers may have pinned keys other than the current ones. */
  get isRotated(): boolean {
    return this.#keys.length > KEY_USES.length;
  }

  /** Returns the newest valid key for this use. */
  current(use: KeyUse, now: Millis): ServiceKey {
    const ofUse = this.all(use);
    // If the clock was set back, it may be earlier than every key.
    return (ofUse.findLast(({ from }) => from <= now) ?? ofUse[0]) as ServiceKey;
  }

  /** Returns the key that a chamber pinned, while that key is valid; otherwise the current key. */
  pinned(use: KeyUse, thumbprint: string | undefined, now: Millis): ServiceKey {
    const key = this.#keys.find((each) => each.use === use && each.thumbprint === thumbprint);
    return key !== undefined && (key.until === null || now < key.until) ? key : this.current(use, now);
  }

  /** Returns the keys that a new chamber records, so that the chamber's root on the chain pins them. */
  pins(now: Millis): PinnedKeys {
    return {
      receipts: this.current('receipts', now).thumbprint,
      checkpoints: this.current('checkpoints', now).thumbprint,
    };
  }

  /** Returns a JWK set (RFC 7517, 5) of all public keys, including former ones. */
  directory(): { readonly keys: readonly PublishedKey[] } {
    return { keys: this.#keys.map(toPublished) };
  }
}

function toPublished({ use, publicKey, thumbprint, from, until }: ServiceKey): PublishedKey {
  return {
    ...toJwk(publicKey),
    kid: thumbprint,
    alg: 'Ed25519',
    use: 'sig',
    purpose: use,
    nbf: Math.floor(from / 1000),
    ...(until !== null && { exp: Math.floor(until / 1000) }),
  };
}

/** Throws an Error whose message never contains a seed. */
export function parseKeys(text: string): ServiceKeys {
  const { logId, keys } = parseFile(text);
  for (const use of KEY_USES) {
    const ofUse = keys.filter((key) => key.use === use);
    if (ofUse.length === 0) throw new Error(`it has no key for ${use}`);
    if (ofUse.at(-1)?.until !== null) throw new Error(`its newest key for ${use} must have "until": null`);
    if (ofUse.some(({ from }, index) => from < (ofUse[index - 1]?.from ?? '')))
      throw new Error(`its keys for ${use} are not in the order of "from"`);
  }
  const read = keys.map(({ use, seed, from, until }) => {
    const bytes = fromHex(seed);
    const publicKey = publicKeyOf(bytes);
    const thumbprint = thumbprintOf(publicKey);
    const [begin, end] = [instantOf(from), until === null ? null : instantOf(until)];
    return { use, seed: bytes, publicKey, thumbprint, from: begin, until: end };
  });
  const thumbprints = new Set(read.map(({ thumbprint }) => thumbprint));
  if (thumbprints.size < read.length) throw new Error('it has the same key twice');
  return new ServiceKeys(logId, read);
}

function parseFile(text: string): KeyFile {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error('it is truncated or not JSON');
  }
  const { success, output, issues } = v.safeParse(keyFile, json);
  if (success) return output;
  const [issue] = issues;
  // The issue's message would reveal the value.
  throw new Error(`${v.getDotPath(issue) ?? 'the JSON value'} is invalid`);
}

interface NewKeys {
  readonly logId: string;
  readonly seeds: Readonly<Record<KeyUse, string>>;
  readonly now: Millis;
  /** The end of the former keys' validity. */
  readonly until: Millis;
}

/** Returns the text of a key file with the same keys for another log. */
export function withLogId(before: string, logId: string): string {
  const file: KeyFile = { ...parseFile(before), logId };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** Returns the text of a key file with a new key for each use; `before` is the text of the former file. */
export function withNewKeys(before: string | undefined, { logId, seeds, now, until }: NewKeys): string {
  const earlier = before === undefined ? [] : parseFile(before).keys;
  const retired = earlier.map((key) => (key.until === null ? { ...key, until: toTimestamp(until) } : key));
  const added = KEY_USES.map((use) => ({ use, seed: seeds[use], from: toTimestamp(now), until: null }));
  const file: KeyFile = { logId, keys: [...retired, ...added] };
  return `${JSON.stringify(file, null, 2)}\n`;
}
