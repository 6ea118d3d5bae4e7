// A mirror's folder: `lines.ndjson` (the line of each leaf, in the order of the tree), `tile/` and `checkpoint` as C2SP tlog-tiles has them,
// so that any web server can serve it, and `state.json`, which is replaced as a whole: what is beyond it is of a step that was not
// finished, and is written again.
import { type FileHandle, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { flushFolder, makeFolder, replaceFile } from '../files/durable-file.ts';
import { ENTRIES, formatEntries, parseEntries, type Tile, tileAt, tilePath } from '../tlog/tile.ts';
import { edgeTiles, type ReadTiles, type StoredTile } from '../tlog/tiled-tree.ts';
import { HASH_BYTES } from '../tlog/tree.ts';
import { parseJson } from '../vocabulary/json.ts';

export interface MirrorState {
  readonly url: string;
  readonly logId: string;
  readonly origin: string;
  /** Verifier keys that have signed checkpoints of the log, the newest last. */
  readonly keys: readonly string[];
  /** Leaves under the last verified checkpoint, and bytes of lines.ndjson that hold their lines. */
  readonly size: number;
  readonly bytes: number;
  /** Null before the first one. */
  readonly note: string | null;
}

const LINE_BREAK = Buffer.from('\n');
const JSON_VALUES_MAX = 1_000;

export class MirrorFolder {
  readonly #path: string;
  readonly #lines: FileHandle;
  #state: MirrorState | undefined;
  #bytes: number;

  private constructor(path: string, lines: FileHandle, state: MirrorState | undefined) {
    this.#path = path;
    this.#lines = lines;
    this.#state = state;
    this.#bytes = state?.bytes ?? 0;
  }

  static async open(path: string): Promise<MirrorFolder> {
    makeFolder(path);
    const text = await readFile(join(path, 'state.json'), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    const state = text === undefined ? undefined : (parseJson(text, JSON_VALUES_MAX) as unknown as MirrorState);
    const lines = await open(join(path, 'lines.ndjson'), 'a+');
    await lines.truncate(state?.bytes ?? 0);
    await flushFolder(path);
    return new MirrorFolder(path, lines, state);
  }

  get state(): MirrorState | undefined {
    return this.#state;
  }

  /** The file of a tile of the verified tree. */
  #tileFile(tile: Tile): string {
    return join(this.#path, tilePath(tile));
  }

  /** A tile of the verified tree: its hashes, joined. */
  readTile(tile: Tile): Promise<Uint8Array> {
    return readFile(this.#tileFile(tile));
  }

  readonly readTiles: ReadTiles = (refs) =>
    Promise.all(
      refs.map(async (ref) => {
        const tile = tileAt(ref, this.#state?.size ?? 0);
        const bytes = tile && (await readFile(this.#tileFile(tile)).catch(() => undefined));
        return ref.level === ENTRIES && bytes !== undefined ? parseEntries(bytes) : bytes;
      }),
    );

  /** They are on disk before the state that counts on them: `save` is called later. */
  async writeTiles(tiles: readonly StoredTile[]): Promise<void> {
    const folders = new Set<string>();
    for (const { level, index, bytes } of tiles) {
      const file = this.#tileFile({ level, index, width: bytes.length / HASH_BYTES });
      folders.add(dirname(file));
      makeFolder(dirname(file));
      await writeFile(file, level === ENTRIES ? formatEntries(bytes) : bytes, { flush: true });
    }
    for (const folder of folders) await flushFolder(folder);
  }

  /** Null stands for a line that the service does not publish. */
  async appendLines(lines: readonly (Uint8Array | null)[]): Promise<void> {
    const bytes = Buffer.concat(lines.flatMap((line) => [line ?? Buffer.from('null'), LINE_BREAK]));
    await this.#lines.appendFile(bytes);
    this.#bytes += bytes.length;
  }

  /** Forgets the lines that were appended since the last state. */
  async dropLines(): Promise<void> {
    this.#bytes = this.#state?.bytes ?? 0;
    await this.#lines.truncate(this.#bytes);
  }

  /** All that was written is the mirror's from now on. */
  async save(state: Omit<MirrorState, 'bytes'>): Promise<void> {
    await this.#lines.sync();
    const former = edgeTiles(this.#state?.size ?? 0);
    const next: MirrorState = { ...state, bytes: this.#bytes };
    await replaceFile(join(this.#path, 'state.json'), `${JSON.stringify(next, null, 2)}\n`);
    if (state.note !== null) await replaceFile(join(this.#path, 'checkpoint'), state.note);
    this.#state = next;
    const edge = new Set(edgeTiles(state.size).map(tilePath));
    for (const tile of former) if (!edge.has(tilePath(tile))) await rm(this.#tileFile(tile), { force: true });
  }

  /** Keeps what shows an inconsistency; returns the path of the file. */
  async keep(name: string, content: object): Promise<string> {
    const file = join(this.#path, name);
    await replaceFile(file, `${JSON.stringify(content, null, 2)}\n`);
    return file;
  }

  async close(): Promise<void> {
    await this.#lines.close();
  }
}
