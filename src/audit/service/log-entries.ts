// All entries of a log under one checkpoint, with the event that the index assigns to each. The index is unsigned, so it must contain
// each event of a stream once, in order and without gaps, and callers compare the entries with the lines.
import { type IndexedLeaf, parseIndexedLeaf, positionProblem, type Stream } from '../../tlog/leaf-index.ts';
import type { SignedCheckpoint } from '../../tlog/proof.ts';
import { ENTRIES, TILE_WIDTH, type Tile, tilesBetween } from '../../tlog/tile.ts';
import { GrowingTree } from '../../tlog/tiled-tree.ts';
import { HASH_BYTES, TREE } from '../../tlog/tree.ts';
import { withCommas } from '../../vocabulary/values.ts';
import { ENTRIES_MAX, type LogKey, type ServiceLog } from './service-log.ts';

const INDEX_LEAVES = 1_000;
/** Each stream takes about 100 bytes. */
const STREAMS_MAX = 250_000;

/** The log exceeds the auditor's memory; a mirror reads logs of any size. */
export class LogTooLarge extends Error {}

/** The entries don't match the checkpoint's root, or the index can't be that of an honest log. */
export class BrokenIndex extends Error {
  readonly leaf: IndexedLeaf | undefined;

  constructor(problem: string, leaf?: IndexedLeaf) {
    super(problem);
    this.leaf = leaf;
  }
}

export class LogEntries {
  #checkpoint: SignedCheckpoint | undefined;
  readonly #tree = new GrowingTree(0, [], TREE);
  #entries = new Uint8Array();
  /** For each entry, the index of the stream's previous entry; -1 for the first. */
  #before = new Int32Array();
  readonly #streams = new Map<Stream, { count: number; last: number }>();

  /** The checkpoint that covers all entries; undefined before the first read. */
  get checkpoint(): SignedCheckpoint | undefined {
    return this.#checkpoint;
  }

  /**
   * Reads entries up to a larger checkpoint. Throws BrokenIndex, LogTooLarge, and UnusableInput if entries or index are not served. Must not
   * be called again after an error.
   */
  async extend(checkpoint: SignedCheckpoint, service: ServiceLog, log: LogKey): Promise<void> {
    const { size, root } = checkpoint;
    const before = this.#tree.size;
    if (this.#checkpoint !== undefined && size <= before) return;
    if (size > ENTRIES_MAX) throw new LogTooLarge(`the log has more than ${withCommas(ENTRIES_MAX)} entries`);
    this.#checkpoint = checkpoint;
    this.#entries = grown(this.#entries, new Uint8Array(size * HASH_BYTES));
    this.#before = grown(this.#before, new Int32Array(size));
    for (const tile of tilesBetween(ENTRIES, before, size)) await this.#readTile(tile, service, log);
    if (Buffer.compare(this.#tree.root(), root) !== 0)
      throw new BrokenIndex(`the root of the log’s entries differs from its checkpoint of size ${size}`);
    for (let after = before; after < size; after += INDEX_LEAVES) {
      await this.#readIndex(service, log, after, Math.min(INDEX_LEAVES, size - after));
    }
  }

  /** The first tile repeats known entries; the root shows whether they are the same. */
  async #readTile(tile: Tile, service: ServiceLog, log: LogKey): Promise<void> {
    const tree = this.#tree;
    const entries = await service.entriesIn(log, tile);
    const added = entries.subarray((tree.size - tile.index * TILE_WIDTH) * HASH_BYTES);
    this.#entries.set(added, tree.size * HASH_BYTES);
    for (let at = 0; at < added.length; at += HASH_BYTES) tree.add(added.subarray(at, at + HASH_BYTES));
    tree.takeFullTiles();
  }

  async #readIndex(service: ServiceLog, log: LogKey, after: number, count: number): Promise<void> {
    const rows = (await service.index(log, after, count)).split('\n').slice(0, -1);
    for (let i = 0; i < count; i++) {
      const leaf = parseIndexedLeaf(rows[i] ?? '');
      if (leaf?.index !== after + i) throw new BrokenIndex(`the index does not name the event of entry ${after + i}`);
      this.#place(leaf);
    }
  }

  #place(leaf: IndexedLeaf): void {
    const { stream, index } = leaf;
    const known = this.#streams.get(stream) ?? { count: 0, last: -1 };
    const problem = positionProblem(leaf, known.count);
    if (problem !== undefined) throw new BrokenIndex(problem, leaf);
    this.#before[index] = known.last;
    this.#streams.set(stream, { count: known.count + 1, last: index });
    if (this.#streams.size > STREAMS_MAX)
      throw new LogTooLarge(`the log has more than ${withCommas(STREAMS_MAX)} chambers and accounts`);
  }

  get streams(): Iterable<Stream> {
    return this.#streams.keys();
  }

  countOf(stream: Stream): number {
    return this.#streams.get(stream)?.count ?? 0;
  }

  /** Returns undefined if the event has no entry. */
  indexOf(stream: Stream, eventId: number): number | undefined {
    let { count, last } = this.#streams.get(stream) ?? { count: 0, last: -1 };
    if (eventId > count) return undefined;
    for (; count > eventId; count--) last = this.#before[last] ?? -1;
    return last;
  }

  entryAt(index: number): Uint8Array {
    return this.#entries.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }

  /** Returns the entries' indexes in the order of the stream's events. */
  indexesOf(stream: Stream): Int32Array {
    const { count, last } = this.#streams.get(stream) ?? { count: 0, last: -1 };
    const indexes = new Int32Array(count);
    for (let at = count - 1, index = last; at >= 0; at--) {
      indexes[at] = index;
      index = this.#before[index] ?? -1;
    }
    return indexes;
  }
}

function grown<Values extends Uint8Array | Int32Array>(before: Values, after: Values): Values {
  after.set(before);
  return after;
}
