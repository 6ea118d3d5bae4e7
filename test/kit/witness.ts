// A witness (c2sp.org/tlog-witness): it cosigns a checkpoint only if that extends the last checkpoint of the same log that it
// cosigned.
import { text } from 'node:stream/consumers';
import { verifyConsistency } from '../../src/crypto/merkle-proof.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { parseCheckpoint } from '../../src/tlog/checkpoint.ts';
import {
  cosignedMessage,
  formatSignatureLine,
  formatVerifierKey,
  NOTE_KEY_TYPES,
  type NoteKey,
  type NoteSignature,
  openNote,
  parseNote,
  parseVerifierKey,
  toNoteKey,
} from '../../src/tlog/note.ts';
import { TREE } from '../../src/tlog/tree.ts';
import { serve } from './serve.ts';

interface Reply {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

export class Witness {
  readonly key: NoteKey;
  /** The status of each response. */
  readonly statuses: number[] = [];
  isAway = false;
  readonly #sign: (message: Uint8Array) => Uint8Array;
  readonly #logs: NoteKey[] = [];
  /** The last cosigned tree of each log, by origin. */
  readonly #trees = new Map<string, { readonly size: number; readonly root: Uint8Array }>();

  constructor(name = 'witness.test/w1', seed = new Uint8Array(32).fill(9)) {
    this.key = toNoteKey(name, NOTE_KEY_TYPES.cosignature, publicKeyOf(seed));
    this.#sign = signWith(seed);
  }

  /** Accepts checkpoints signed by this verifier key. */
  watch(logKey: string): void {
    const key = parseVerifierKey(logKey);
    if (key === undefined) throw new Error(`${logKey} is not a verifier key`);
    this.#logs.push(key);
  }

  cosign(checkpoint: string, atSeconds = 1_893_456_000): NoteSignature {
    const { name, keyId } = this.key;
    const at = Buffer.alloc(8);
    at.writeBigUInt64BE(BigInt(atSeconds));
    const signature = this.#sign(cosignedMessage(checkpoint, BigInt(atSeconds)));
    return { name, keyId, bytes: Uint8Array.from(Buffer.concat([at, signature])) };
  }

  addCheckpoint(request: string): Reply {
    const reply = this.#reply(request);
    this.statuses.push(reply.status);
    return reply;
  }

  #reply(request: string): Reply {
    const end = request.indexOf('\n\n');
    const [first = '', ...proof] = request.slice(0, end).split('\n');
    const oldSize = Number(/^old (\d+)$/.exec(first)?.[1]);
    const note = parseNote(request.slice(end + 2));
    const checkpoint = note && parseCheckpoint(note.text);
    if (note === undefined || checkpoint === undefined) return { status: 400, body: 'malformed request\n' };
    const { origin, size, root } = checkpoint;
    const keys = this.#logs.filter(({ name }) => name === origin);
    if (keys.length === 0) return { status: 404, body: 'unknown log\n' };
    if (openNote(note, keys) === undefined) return { status: 403, body: 'not signed by the log\n' };
    const last = this.#trees.get(origin) ?? { size: 0, root: new Uint8Array() };
    if (oldSize !== last.size) return { status: 409, body: `${last.size}\n`, type: 'text/x.tlog.size' };
    const hashes = proof.map((hash) => Buffer.from(hash, 'base64'));
    const claim = { from: oldSize, to: size, fromRoot: last.root, toRoot: root, proof: hashes };
    const isExtended = oldSize === 0 || verifyConsistency({ ...claim, hashNodes: TREE.hashNodes });
    if (!isExtended) return { status: 422, body: 'the proof does not verify\n' };
    this.#trees.set(origin, { size, root });
    return { status: 200, body: formatSignatureLine(this.cosign(note.text)) };
  }

  /** Serves add-checkpoint until the test ends, and returns the witness's line in a policy. */
  async serve(): Promise<string> {
    const url = await serve(async (request, response) => {
      if (this.isAway) return void response.writeHead(503).end();
      const { status, body, type = 'text/plain; charset=utf-8' } = this.addCheckpoint(await text(request));
      response.writeHead(status, { 'Content-Type': type }).end(body);
    });
    return this.policyLine(url);
  }

  policyLine(url: string): string {
    return `witness W1 ${formatVerifierKey(this.key)} ${url}`;
  }
}
