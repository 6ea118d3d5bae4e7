// Verifies signatures ahead of the auditor with the browser's own Ed25519, which is many times as fast as JavaScript. Only
// what the browser accepts counts; everything else is left to the project's own rule.
import type { RawLine } from '../../audit/input.ts';
import { parseDid } from '../../crypto/did-key.ts';
import { parseSignature, signatureBase } from '../../crypto/http-signature.ts';
import { isSignedBy, type VerifyingKey } from '../../crypto/verify.ts';
import type { ChamberEvent } from '../../vocabulary/events.ts';
import { toHex } from '../../vocabulary/values.ts';

export interface Line extends RawLine {
  readonly text: string;
}

const utf8 = new TextEncoder();

export class SignatureCache {
  /** Key, signature and message of each accepted signature, until the auditor has asked for it. */
  readonly #accepted = new Set<string>();
  readonly #keys = new Map<string, Promise<CryptoKey>>();

  readonly verify = (key: VerifyingKey, message: Uint8Array, signature: Uint8Array): boolean =>
    this.#accepted.delete(nameOf(key.bytes, message, signature)) || isSignedBy(key, message, signature);

  async prepare(lines: readonly Line[]): Promise<void> {
    // Absent in a page that came over http from another machine.
    if (globalThis.crypto.subtle === undefined) return;
    await Promise.all(lines.map(({ text }) => this.#verify(text).catch(() => undefined)));
  }

  async #verify(line: string): Promise<void> {
    const { request } = JSON.parse(line) as ChamberEvent;
    if (request === null) return;
    const parsed = parseSignature(request);
    const publicKey = parseDid(parsed.keyid);
    if (publicKey === undefined) return;
    const message = utf8.encode(signatureBase(parsed, request));
    const key = this.#keys.get(parsed.keyid) ?? importKey(publicKey);
    this.#keys.set(parsed.keyid, key);
    const isValid = await crypto.subtle.verify('Ed25519', await key, parsed.signature as BufferSource, message);
    if (isValid) this.#accepted.add(nameOf(publicKey, message, parsed.signature));
  }
}

function importKey(publicKey: Uint8Array): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', publicKey as BufferSource, 'Ed25519', false, ['verify']);
}

function nameOf(key: Uint8Array, message: Uint8Array, signature: Uint8Array): string {
  return [key, signature, message].map(toHex).join();
}
