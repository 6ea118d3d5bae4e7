// Checks a folder for damage by a killed process or a failing disk: the length of the lines file, the tiles at the edge, and whether the last
// lines match their leaves.
import type { FileHandle } from 'node:fs/promises';
import { READ_LIMITS } from '../reading/limits.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { parseNote } from '../tlog/note.ts';
import { ENTRIES, TILE_WIDTH } from '../tlog/tile.ts';
import { openGrowingTree, type ReadTiles } from '../tlog/tiled-tree.ts';
import { HASH_BYTES } from '../tlog/tree.ts';
import type { MirrorState } from './record.ts';
import { storedLineLeaf } from './stubs.ts';

interface FolderContent {
  readonly state: MirrorState;
  readonly lines: FileHandle;
  readonly readTiles: ReadTiles;
}

/** The longest line with its line break and the preceding one. */
const TAIL_BYTES = READ_LIMITS.lineBytesMax + 2;
const LINE_BREAK = 0x0a;

/** Resolves to undefined if the folder matches its state. */
export async function damageOf(content: FolderContent): Promise<string | undefined> {
  const { state, lines } = content;
  if (state.size === 0) return undefined;
  const { size: bytes } = await lines.stat();
  if (bytes < state.bytes) return `lines.ndjson has ${bytes} bytes, but ${state.bytes} were verified`;
  return (await damageOfTiles(content)) ?? (await damageOfTail(content));
}

/** Returns the tree size of a verified checkpoint. */
export function sizeOf(note: string): number {
  return parseCheckpoint(parseNote(note)?.text ?? '')?.size ?? 0;
}

async function damageOfTiles({ state: { size, note }, readTiles }: FolderContent): Promise<string | undefined> {
  try {
    const root = (await openGrowingTree(size, readTiles)).root();
    const checkpoint = parseCheckpoint(parseNote(note)?.text ?? '');
    const isWhole = checkpoint?.size !== size || Buffer.compare(checkpoint.root, root) === 0;
    return isWhole ? undefined : 'the root of the tiles differs from the checkpoint';
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return error.message;
  }
}

async function damageOfTail({ state: { size, bytes }, lines, readTiles }: FolderContent): Promise<string | undefined> {
  const tail = Buffer.alloc(Math.min(bytes, TAIL_BYTES));
  await lines.read(tail, 0, tail.length, bytes - tail.length);
  const index = Math.floor((size - 1) / TILE_WIDTH);
  const [entries = new Uint8Array()] = await readTiles([{ level: ENTRIES, index }]);
  const last = linesAtEnd(tail, tail.length === bytes).slice(-(size - index * TILE_WIDTH));
  if (last.length === 0) return 'lines.ndjson does not end with a line';
  for (const [i, line] of last.entries()) {
    const lineIndex = size - last.length + i;
    const at = (lineIndex % TILE_WIDTH) * HASH_BYTES;
    const isNull = line.length === 4 && line.toString() === 'null';
    if (!isNull && Buffer.compare(storedLineLeaf(line), entries.subarray(at, at + HASH_BYTES)) !== 0) {
      return `line ${lineIndex + 1} of lines.ndjson has changed since it was verified`;
    }
  }
  return undefined;
}

/** Returns complete lines. The first line is incomplete unless the tail is the whole file. */
function linesAtEnd(tail: Buffer, isWholeFile: boolean): readonly Buffer[] {
  if (tail.at(-1) !== LINE_BREAK) return [];
  const lines: Buffer[] = [];
  for (let at = 0, end = tail.indexOf(LINE_BREAK); end >= 0; at = end + 1, end = tail.indexOf(LINE_BREAK, at)) {
    if (at > 0 || isWholeFile) lines.push(tail.subarray(at, end));
  }
  return lines;
}
