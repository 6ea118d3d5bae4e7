// Follows a log and keeps all of it. Each step ends with a checkpoint under which every leaf, tile and line in the folder was verified, or
// with what the service said that can't be true together: then the mirror keeps it as a file, and stops.
import { leafHash } from '../crypto/merkle.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { forkProofByTiles } from '../tlog/misbehaviour.ts';
import { formatNote, type NoteKey, parseVerifierKey } from '../tlog/note.ts';
import { openCheckpoint, type SignedCheckpoint } from '../tlog/proof.ts';
import { ENTRIES, TILE_WIDTH, tilesBetween } from '../tlog/tile.ts';
import { openGrowingTree } from '../tlog/tiled-tree.ts';
import { HASH_BYTES } from '../tlog/tree.ts';
import { MirrorFolder, type MirrorState } from './folder.ts';
import { type Leaf, NotServed, PublishedLog, TooLong } from './published-log.ts';

const LEAVES_AT_ONCE = 1_000;
/** The bytes of lines that are kept in memory: as many as the longest line that is read. */
const HELD_BYTES_MAX = READ_LIMITS.lineBytesMax;

/** The service has said two things that no honest log says. The file has both; what is signed is a proof of misbehaviour. */
export class Inconsistent extends Error {
  readonly file: string;

  constructor(problem: string, file: string) {
    super(`${problem}; both are in ${file}`);
    this.file = file;
  }
}

export interface MirrorOptions {
  readonly url: string;
  readonly folder: string;
  /** The only key that is trusted; without it, the one that the service names at the first step is. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal;
}

export interface MirrorStep {
  readonly size: number;
  readonly added: number;
  /** The number of added lines that the service does not publish. */
  readonly unpublished: number;
}

export class Mirror {
  readonly #options: MirrorOptions;
  readonly #log: PublishedLog;
  readonly #folder: MirrorFolder;

  private constructor(options: MirrorOptions, folder: MirrorFolder) {
    this.#options = options;
    this.#log = new PublishedLog(options.url, options.signal);
    this.#folder = folder;
  }

  static async open(options: MirrorOptions): Promise<Mirror> {
    return new Mirror(options, await MirrorFolder.open(options.folder));
  }

  close(): Promise<void> {
    return this.#folder.close();
  }

  /** Brings the folder up to the newest checkpoint. Throws NotServed, or Inconsistent. */
  async step(): Promise<MirrorStep> {
    const { state, prefix } = await this.#known();
    const text = await this.#log.checkpoint(prefix);
    const served = state.keys.map((key) => openCheckpoint(text, toKey(key))).find((opened) => opened !== undefined);
    if (served === undefined) throw new NotServed('the checkpoint is not signed by a key of the log');
    if (served.size <= state.size) {
      await this.#requireSame(state, served);
      return { size: state.size, added: 0, unpublished: 0 };
    }
    try {
      return await this.#extend(state, served, prefix);
    } catch (error) {
      await this.#folder.dropLines();
      throw error;
    }
  }

  /** The log of the folder, or the one that the service names. A log's key may change; its id and its origin do not. */
  async #known(): Promise<{ readonly state: Omit<MirrorState, 'bytes'>; readonly prefix: string }> {
    const { logId, origin, prefix, checkpointKey } = await this.#log.name();
    const { key = checkpointKey, url } = this.#options;
    if (parseVerifierKey(key)?.name !== origin) throw new NotServed(`the key ${key} is not one of the log ${origin}`);
    const { state } = this.#folder;
    if (state === undefined) return { state: { url, logId, origin, keys: [key], size: 0, note: null }, prefix };
    if (state.logId !== logId || state.origin !== origin) {
      throw new NotServed(`the service has another log now, ${origin}; the folder mirrors ${state.origin}`);
    }
    const keys = state.keys.includes(key) ? state.keys : [...state.keys, key];
    return { state: { ...state, url, keys }, prefix };
  }

  /** An older checkpoint may still be cached somewhere; it has to be one of the same tree. */
  async #requireSame(state: Omit<MirrorState, 'bytes'>, served: SignedCheckpoint): Promise<void> {
    if (served.size === 0) return;
    const proof = await forkProofByTiles([served, this.#held(state)], state.keys, (tile) =>
      this.#folder.readTile(tile),
    );
    if (proof === undefined) return;
    const file = await this.#folder.keep(`inconsistent-${served.size}-${state.size}.json`, proof);
    throw new Inconsistent(`the checkpoint of size ${served.size} has another root than the lines before`, file);
  }

  #held({ keys, note }: Omit<MirrorState, 'bytes'>): SignedCheckpoint {
    const held = keys.map((key) => openCheckpoint(note ?? '', toKey(key))).find((opened) => opened !== undefined);
    if (held === undefined) throw new Error('the folder’s own checkpoint is not signed by a key of the log');
    return held;
  }

  async #extend(state: Omit<MirrorState, 'bytes'>, served: SignedCheckpoint, prefix: string): Promise<MirrorStep> {
    const tree = await openGrowingTree(state.size, this.#folder.readTiles);
    let unpublished = 0;
    let pending: Uint8Array[] = [];
    const flush = async () => {
      unpublished += await this.#addLines(prefix, tree.size - pending.length, pending);
      await this.#folder.writeTiles(tree.takeFullTiles());
      pending = [];
    };
    for (const tile of tilesBetween(ENTRIES, state.size, served.size)) {
      const entries = await this.#log.tile(prefix, tile);
      // The first one begins with entries that are there already.
      for (let i = tree.size - tile.index * TILE_WIDTH; i < tile.width; i++) {
        const entry = entries.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES);
        tree.add(entry);
        pending.push(entry);
        if (pending.length === LEAVES_AT_ONCE) await flush();
      }
    }
    if (Buffer.compare(tree.root(), served.root) !== 0) await this.#explain(state, served, prefix);
    await flush();
    await this.#folder.writeTiles(tree.changedTiles());
    await this.#folder.save({ ...state, size: served.size, note: formatNote(served.note) });
    return { size: served.size, added: served.size - state.size, unpublished };
  }

  /** Returns how many of the lines are not published. Those that are too long to be held together are added in halves. */
  async #addLines(prefix: string, after: number, entries: readonly Uint8Array[]): Promise<number> {
    if (entries.length === 0) return 0;
    try {
      return await this.#addLinesAtOnce(prefix, after, entries);
    } catch (error) {
      if (!(error instanceof TooLong) || entries.length === 1) throw error;
      const half = Math.ceil(entries.length / 2);
      const unpublished = await this.#addLines(prefix, after, entries.slice(0, half));
      return unpublished + (await this.#addLines(prefix, after + half, entries.slice(half)));
    }
  }

  async #addLinesAtOnce(prefix: string, after: number, entries: readonly Uint8Array[]): Promise<number> {
    const leaves = await this.#log.leaves(prefix, after, entries.length);
    const lines = await this.#readLines(leaves);
    for (const [i, line] of lines.entries()) {
      if (line === null || Buffer.compare(leafHash(line), entries[i] as Uint8Array) === 0) continue;
      const { chamberId, did, eventId, index } = leaves[i] as Leaf;
      const what = `event ${eventId} of ${chamberId === null ? did : `chamber ${chamberId}`}`;
      const entry = Buffer.from(entries[i] as Uint8Array).toString('base64');
      const file = await this.#folder.keep(`inconsistent-line-${index}.json`, { index, entry, line: `${line}` });
      throw new Inconsistent(`the service serves another line as ${what} than the log has at index ${index}`, file);
    }
    await this.#folder.appendLines(lines);
    return lines.filter((line) => line === null).length;
  }

  /** One request for each stream: within these leaves, its events follow each other. */
  async #readLines(leaves: readonly Leaf[]): Promise<readonly (Uint8Array | null)[]> {
    const streams = Map.groupBy(leaves, ({ chamberId, did }) => chamberId ?? did);
    const lines = new Map<number, Uint8Array>();
    let bytesMax = HELD_BYTES_MAX;
    for (const run of streams.values()) {
      const [first, last] = [run[0] as Leaf, run.at(-1) as Leaf];
      const count = last.eventId - first.eventId + 1;
      const read = await this.#log.events(first, { after: first.eventId - 1, count, bytesMax });
      bytesMax -= read.reduce((sum, { length }) => sum + length, 0);
      // What an account does not publish is its beginning.
      const missing = run.length - read.length;
      const isPublished = missing === 0 || (first.chamberId === null && first.eventId === 1 && missing > 0);
      if (!isPublished) throw new NotServed(`the service does not serve all events of ${first.chamberId ?? first.did}`);
      for (const [i, line] of read.entries()) lines.set((run[missing + i] as Leaf).index, line);
    }
    return leaves.map(({ index }) => lines.get(index) ?? null);
  }

  /** The new root is not that of the entries: either the tiles show that the log forked, or the service does not serve its own tree. */
  async #explain(state: Omit<MirrorState, 'bytes'>, served: SignedCheckpoint, prefix: string): Promise<never> {
    const problem = `the entries have another root than the checkpoint of size ${served.size}`;
    if (state.note === null) throw new NotServed(problem);
    const proof = await forkProofByTiles([this.#held(state), served], state.keys, (tile) =>
      this.#log.tile(prefix, tile),
    ).catch((error: unknown) => {
      if (error instanceof NotServed) throw error;
      throw new NotServed(`${problem}: ${(error as Error).message}`, { cause: error });
    });
    if (proof === undefined) throw new NotServed(problem);
    const file = await this.#folder.keep(`inconsistent-${state.size}-${served.size}.json`, proof);
    throw new Inconsistent(`the log of size ${served.size} does not extend the one of size ${state.size}`, file);
  }
}

function toKey(text: string): NoteKey {
  const key = parseVerifierKey(text);
  if (key === undefined) throw new NotServed(`${text} is not a verifier key`);
  return key;
}
