// An agent that signs with node:crypto, written from RFC 9421 alone. The class shares no code with src, so that agreement is
// meaningful.
import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface SignedParts {
  readonly method: string;
  /** The URL as the client uses it. */
  readonly url: string;
  readonly body?: string | undefined;
  /** Unix seconds. */
  readonly created: number;
  readonly expires?: number;
  readonly nonce?: string;
}

export type SignatureHeaders = Readonly<Record<'content-digest' | 'signature-input' | 'signature', string>>;

export class Signer {
  readonly did: string;
  readonly pubkeyHex: string;
  readonly #key: KeyObject;

  constructor(seed: Uint8Array = randomBytes(32)) {
    this.#key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
    const publicKey = createPublicKey(this.#key).export({ format: 'der', type: 'spki' }).subarray(-32);
    this.pubkeyHex = `0x${publicKey.toString('hex')}`;
    this.did = `did:key:z${base58(Buffer.concat([MULTICODEC, publicKey]))}`;
  }

  /** Returns the three headers of the specification (Authentication, 2). */
  sign({ method, url, body = '', created, expires, nonce }: SignedParts): SignatureHeaders {
    const digest = digestOf(body);
    const times = `created=${created}${expires === undefined ? '' : `;expires=${expires}`}`;
    const unique = `nonce="${nonce ?? randomBytes(12).toString('hex')}"`;
    const params = `("@method" "@target-uri" "content-digest");${times};keyid="${this.did}";alg="ed25519";${unique}`;
    const base = `"@method": ${method}\n"@target-uri": ${url}\n"content-digest": ${digest}\n"@signature-params": ${params}`;
    return {
      'content-digest': digest,
      'signature-input': `sig1=${params}`,
      signature: `sig1=:${this.signText(base)}:`,
    };
  }

  /** Returns the signature over any text, in base64, for requests outside the profile. */
  signText(text: string): string {
    return sign(null, Buffer.from(text), this.#key).toString('base64');
  }
}

export function digestOf(body: string | Uint8Array): string {
  return `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
}

/** The PKCS #8 prefix of an Ed25519 private key (RFC 8410). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');
const MULTICODEC = Buffer.from([0xed, 0x01]);
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

function base58(bytes: Buffer): string {
  let digits = '';
  for (let rest = BigInt(`0x${bytes.toString('hex')}`); rest > 0n; rest /= 58n) {
    digits = BASE58.charAt(Number(rest % 58n)) + digits;
  }
  return digits;
}
