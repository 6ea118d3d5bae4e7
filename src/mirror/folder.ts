// A mirror's folder: `lines.ndjson` (the line of each leaf, in the tree's order), `tile/` and `checkpoint` in the layout of C2SP tlog-tiles,
// which any web server can serve, and `mirror.db` (record.ts). A step writes in this order, so a crash at any point leaves a valid folder:
//
// 1. Append lines and write tiles. Nothing depends on them yet, and the next step writes them again.
// 2. Commit them in mirror.db.
// 3. Write `checkpoint` if all of its leaves are committed. If it is missing, the next open writes it from mirror.db.
// 4. Remove partial tiles that wider ones replace.
//
// Stubs replace committed lines: a complete draft of lines.ndjson is written, mirror.db records that the draft must replace the file, and
// then this process or the next open replaces it.
import { createReadStream, existsSync } from 'node:fs';
import { type FileHandle, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { flushFolder, ifMissing, makeFolder, moveFile, replaceFile } from '../files/durable-file.ts';
import { ENTRIES, formatEntries, parseEntries, type Tile, tileAt, tilePath } from '../tlog/tile.ts';
import { edgeTiles, type ReadTiles, type StoredTile } from '../tlog/tiled-tree.ts';
import { HASH_BYTES } from '../tlog/tree.ts';
import { damageOf, sizeOf } from './folder-damage.ts';
import { MirrorRecord, type MirrorState, type StreamEnd, type StreamEnds } from './record.ts';

const LINE_BREAK = Buffer.from('\n');

export class MirrorFolder {
  /** Why all lines are fetched again; undefined if the folder was undamaged. */
  damage: string | undefined;
  readonly #path: string;
  readonly #record: MirrorRecord;
  #lines: FileHandle;
  #bytes = 0;

  private constructor(path: string, record: MirrorRecord, lines: FileHandle) {
    this.#path = path;
    this.#record = record;
    this.#lines = lines;
  }

  /** Rejects with a one-line Error if another process uses the folder. */
  static async open(path: string): Promise<MirrorFolder> {
    await makeFolder(path);
    const record = MirrorRecord.open(join(path, 'mirror.db'));
    let folder: MirrorFolder | undefined;
    try {
      if (record.state === undefined && existsSync(join(path, 'checkpoint'))) {
        throw new Error(`${path} has a checkpoint but no mirror.db: restore mirror.db, or name a new folder`);
      }
      await replaceByDraft(path, record);
      folder = new MirrorFolder(path, record, await open(join(path, 'lines.ndjson'), 'a+'));
      await flushFolder(path);
      await folder.#recover();
      return folder;
    } catch (error) {
      if (folder !== undefined) await folder.#lines.close();
      record.close();
      throw error;
    }
  }

  /** Checks for damage, and removes uncommitted lines. */
  async #recover(): Promise<void> {
    const { state } = this;
    const problem = state && (await damageOf({ state, lines: this.#lines, readTiles: this.readTiles }));
    if (problem !== undefined) await this.#startAgain(problem);
    await this.dropLines();
    if (state === undefined || this.damage !== undefined || state.size < sizeOf(state.note)) return;
    const published = await readFile(join(this.#path, 'checkpoint'), 'utf8').catch(() => undefined);
    if (published !== state.note) await this.publishCheckpoint();
  }

  /** Keeps the damaged file, because the service may not serve its lines again. */
  async #startAgain(problem: string): Promise<void> {
    const aside = `lines-damaged-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.ndjson`;
    await this.#lines.close();
    await moveFile(join(this.#path, 'lines.ndjson'), join(this.#path, aside), { isNew: false });
    this.#lines = await open(join(this.#path, 'lines.ndjson'), 'a+');
    await flushFolder(this.#path);
    this.#record.restart();
    this.damage = `${problem}: all lines are fetched again, and the old ones are in ${join(this.#path, aside)}`;
  }

  get state(): MirrorState | undefined {
    return this.#record.state;
  }

  endOf(stream: number | string): StreamEnd | undefined {
    return this.#record.endOf(stream);
  }

  streamFrom(text: string): number | string | undefined {
    return this.#record.streamFrom(text);
  }

  chambersFrom(least: number, countMax: number): readonly number[] {
    return this.#record.chambersFrom(least, countMax);
  }

  get linesFile(): string {
    return join(this.#path, 'lines.ndjson');
  }

  #tileFile(tile: Tile): string {
    return join(this.#path, tilePath(tile));
  }

  readTile(tile: Tile): Promise<Uint8Array> {
    return readFile(this.#tileFile(tile));
  }

  readonly readTiles: ReadTiles = (refs) =>
    Promise.all(
      refs.map(async (ref) => {
        const tile = tileAt(ref, this.state?.size ?? 0);
        const bytes = tile && (await readFile(this.#tileFile(tile)).catch(ifMissing));
        return ref.level === ENTRIES && bytes !== undefined ? parseEntries(bytes) : bytes;
      }),
    );

  /** `null` represents a line that the service does not publish. */
  async appendLines(lines: readonly (Uint8Array | null)[]): Promise<void> {
    const bytes = Buffer.concat(lines.flatMap((line) => [line ?? Buffer.from('null'), LINE_BREAK]));
    await this.#lines.appendFile(bytes);
    this.#bytes += bytes.length;
  }

  /** Removes the lines appended since the last commit. */
  async dropLines(): Promise<void> {
    this.#bytes = this.state?.bytes ?? 0;
    await this.#lines.truncate(this.#bytes);
  }

  /** Never overwrites a committed tile. */
  async writeTiles(tiles: readonly StoredTile[]): Promise<void> {
    const folders = new Set<string>();
    for (const { level, index, bytes } of tiles) {
      const width = bytes.length / HASH_BYTES;
      if (tileAt({ level, index }, this.state?.size ?? 0)?.width === width) continue;
      const file = this.#tileFile({ level, index, width });
      folders.add(dirname(file));
      await makeFolder(dirname(file));
      await writeFile(file, level === ENTRIES ? formatEntries(bytes) : bytes, { flush: true });
    }
    for (const folder of folders) await flushFolder(folder);
  }

  async commit(state: Omit<MirrorState, 'bytes' | 'stubs' | 'isReplacing'>, ends: StreamEnds): Promise<void> {
    await this.#lines.sync();
    const { stubs } = this.state ?? {};
    this.#record.commit({ ...state, ...(stubs && { stubs }), bytes: this.#bytes }, ends);
  }

  /**
   * Replaces the committed lines for which `replace` returns a different one, and records the processed stubs. Resolves to the number of
   * replaced lines.
   */
  async replaceLines(
    replace: (line: string) => Promise<string | undefined>,
    stubs: NonNullable<MirrorState['stubs']>,
  ): Promise<number> {
    const { state } = this;
    if (state === undefined) return 0;
    await this.dropLines();
    const draft = draftOf(this.#path);
    let [bytes, replaced] = [0, 0];
    const path = this.linesFile;
    const drafted = async function* () {
      // Iterated as soon as it is created: readline drops lines, and its end, that come before.
      for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
        const other = await replace(line);
        if (other !== undefined) replaced++;
        const text = `${other ?? line}\n`;
        bytes += Buffer.byteLength(text);
        yield text;
      }
    };
    await writeFile(draft, drafted(), { flush: true });
    if (replaced > 0) {
      this.#record.commit({ ...state, bytes, stubs, isReplacing: true }, new Map());
      await this.#lines.close();
      await replaceByDraft(this.#path, this.#record);
      this.#lines = await open(this.linesFile, 'a+');
      this.#bytes = bytes;
    } else {
      await rm(draft);
      this.#record.commit({ ...state, stubs }, new Map());
    }
    return replaced;
  }

  /** Writes a line that a stub replaces to a separate file. */
  async keepOriginal(stream: number | string, eventId: number, line: string): Promise<void> {
    const folder = join(this.#path, 'originals');
    await makeFolder(folder);
    await replaceFile(join(folder, `${`${stream}`.replaceAll(':', '-')}-${eventId}.ndjson`), `${line}\n`);
  }

  async publishCheckpoint(): Promise<void> {
    await replaceFile(join(this.#path, 'checkpoint'), this.state?.note ?? '');
  }

  /** Removes partial tiles of the smaller tree that wider ones have replaced. */
  async removeTiles(formerSize: number): Promise<void> {
    const edge = new Set(edgeTiles(this.state?.size ?? 0).map(tilePath));
    for (const tile of edgeTiles(formerSize)) {
      if (!edge.has(tilePath(tile))) await rm(this.#tileFile(tile), { force: true });
    }
  }

  /** Writes evidence of an inconsistency. Resolves to the path of the file. */
  async keep(name: string, content: object): Promise<string> {
    const file = join(this.#path, name);
    await replaceFile(file, `${JSON.stringify(content, null, 2)}\n`);
    return file;
  }

  async close(): Promise<void> {
    await this.#lines.close();
    this.#record.close();
  }
}

function draftOf(path: string): string {
  return join(path, 'lines.ndjson.new');
}

/** Removes an unrecorded draft, left by a process that ended before its commit. */
async function replaceByDraft(path: string, record: MirrorRecord): Promise<void> {
  const draft = draftOf(path);
  const { isReplacing, ...state } = record.state ?? {};
  if (isReplacing === undefined) return await rm(draft, { force: true });
  if (existsSync(draft)) await moveFile(draft, join(path, 'lines.ndjson'), { isNew: false });
  // Without `isReplacing`, which is optional, the state is complete.
  record.commit(state as MirrorState, new Map());
}
