// A request's body: raw bytes for the digest, text for the evidence, and JSON parsed strictly. Hostile until here.
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { ForumError } from '../vocabulary/errors.ts';
import { parseJson } from '../vocabulary/parse-json.ts';
import type { JsonValue } from '../vocabulary/values.ts';
import type { ForumContext } from './context.ts';
import { header } from './header.ts';

export interface RequestBody {
  readonly bytes: Uint8Array;
  /** '' for a request without a body. */
  readonly text: string;
  /** undefined for a request without a body. */
  readonly json: JsonValue | undefined;
}

const NO_BODY: RequestBody = { bytes: new Uint8Array(0), text: '', json: undefined };

/** Throws FORUM_ERR_TOO_LARGE, FORUM_ERR_MEDIA_TYPE or FORUM_ERR_VALIDATION, in this order. */
export async function readBody(c: ForumContext, maxBytes: number): Promise<RequestBody> {
  const bytes = await readBytes(c, maxBytes);
  if (bytes.length === 0) return NO_BODY;
  requireJsonType(header(c, 'content-type'), header(c, 'content-encoding'));
  if (!isUtf8(bytes)) throw new ForumError('FORUM_ERR_VALIDATION', 'body: the bytes are not UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  return { bytes, text, json: parseJson(text) };
}

function readBytes(c: ForumContext, maxBytes: number): Promise<Uint8Array> {
  const declared = Number(header(c, 'content-length') ?? 0);
  if (declared > maxBytes) throw tooLarge(maxBytes);
  const { incoming } = c.env;
  // Read from the socket's stream where there is one: a body of unknown length is cut off at the limit.
  return incoming === undefined ? readWhole(c, maxBytes) : readStream(incoming, maxBytes);
}

async function readWhole(c: ForumContext, maxBytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(await c.req.arrayBuffer());
  if (bytes.length > maxBytes) throw tooLarge(maxBytes);
  return bytes;
}

function readStream(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else reject(tooLarge(maxBytes));
    });
    incoming.once('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    // Without this listener Node would not tell that the client went away; no error is made for those that stay.
    incoming.once('error', () => reject(cutOff()));
  });
}

function cutOff(): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', 'body: the connection was closed within it');
}

/** The adapter lets the rest come for half a second, so that who is still sending gets the answer, and then cuts it off. */
function tooLarge(maxBytes: number): ForumError {
  return new ForumError('FORUM_ERR_TOO_LARGE', `body: at most ${maxBytes} bytes are accepted`);
}

const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

function requireJsonType(type: string | undefined, encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ForumError('FORUM_ERR_MEDIA_TYPE', 'Content-Encoding: compressed bodies are not accepted');
  }
  if (type !== undefined && JSON_TYPE.test(type)) return;
  throw new ForumError('FORUM_ERR_MEDIA_TYPE', 'Content-Type: must be application/json');
}
