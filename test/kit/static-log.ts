// Serves a log of any lines like a service: the tree is signed and consistent, whatever its lines and its index say.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { leafHash } from '../../src/crypto/merkle.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import { formatCheckpoint } from '../../src/tlog/checkpoint.ts';
import type { Stream } from '../../src/tlog/leaf-index.ts';
import { formatNote, formatVerifierKey, NOTE_KEY_TYPES, signNote, toNoteKey } from '../../src/tlog/note.ts';
import { ENTRIES, formatEntries, parseTilePath } from '../../src/tlog/tile.ts';
import { GrowingTree } from '../../src/tlog/tiled-tree.ts';
import { TREE } from '../../src/tlog/tree.ts';
import { NO_PREVIOUS, toHex } from '../../src/vocabulary/values.ts';
import { atEnd } from './temporary.ts';

export const STATIC_LOG_ID = '0123456789abcdef'.repeat(2);
const ORIGIN = `static.example/log/${STATIC_LOG_ID}`;
const SEED = new Uint8Array(32).fill(7);
export const STATIC_LOG_KEY = toNoteKey(ORIGIN, NOTE_KEY_TYPES.ed25519, publicKeyOf(SEED));

export interface LoggedLine {
  readonly stream: Stream;
  readonly eventId: number;
  readonly line: string;
}

/** Returns the next line of a stream, with the members that a mirror checks. */
export function lineAfter(before: readonly LoggedLine[], stream: Stream, more: object = {}): LoggedLine {
  const last = before.findLast((each) => each.stream === stream);
  const eventId = (last?.eventId ?? 0) + 1;
  const prev = last === undefined ? NO_PREVIOUS : toHex(leafHash(Buffer.from(last.line)));
  const named = typeof stream === 'number' ? { chamberId: stream, did: 'did:key:z' } : { chamberId: null, did: stream };
  return { stream, eventId, line: JSON.stringify({ ...named, eventId, prev, ...more }) };
}

export interface StaticLog {
  /** The entries of the tree, in order. */
  readonly entries: readonly LoggedLine[];
  /** False rows of the index, by leaf index. */
  readonly index?: Readonly<Record<number, Pick<LoggedLine, 'stream' | 'eventId'>>>;
  /** The served lines; by default, those of the entries. */
  readonly served?: readonly LoggedLine[];
  /** The streams that are served without lines. */
  readonly quiet?: readonly Stream[];
  /** The size of the checkpoint at each request; undefined for no checkpoint. The last size is repeated. */
  readonly sizes?: readonly (number | undefined)[];
  /** A false size for the checkpoint. */
  readonly size?: number;
  readonly prefix?: string;
  /** Returns a false response to a path; a number is a status. */
  readonly lie?: (path: string) => string | number | undefined;
}

export async function serveLog(initial: StaticLog) {
  let log = initial;
  let files = toFiles(initial);
  let asked = 0;
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    requests.push(pathname);
    const lie = log.lie?.(pathname);
    if (typeof lie === 'number') return void response.writeHead(lie).end();
    if (lie !== undefined) return void response.end(lie);
    const [after, limit] = [Number(searchParams.get('after')), Number(searchParams.get('limit'))];
    const file = pathname.endsWith('/checkpoint') ? checkpointOf(log, asked++) : files(pathname);
    if (file !== undefined) return void response.end(file);
    if (pathname === `/log/${STATIC_LOG_ID}/index`) {
      const rows = Array.from({ length: limit }, (_, i) => rowOf(log, after + i)).filter((row) => row !== undefined);
      return void response.end(rows.join(''));
    }
    if (pathname === '/chambers') {
      const ids = new Set(
        (log.served ?? log.entries).map(({ stream }) => stream).filter((each) => typeof each === 'number'),
      );
      return void response.end(JSON.stringify([...ids].sort((a, b) => b - a).map((chamberId) => ({ chamberId }))));
    }
    const [, stream] = /^\/(?:agents|chambers)\/([^/]+)\/events$/.exec(pathname) ?? [];
    const lines = (log.served ?? log.entries).filter((each) => `${each.stream}` === stream);
    if (lines.length === 0 && !log.quiet?.some((each) => `${each}` === stream))
      return void response.writeHead(404).end();
    const wanted = lines.filter(({ eventId }) => eventId > after && eventId <= after + limit);
    // Chunks are sent one by one, because the reader may stop early.
    const send = (i: number): void => {
      if (wanted[i] === undefined) response.end();
      else response.write(`${wanted[i].line}\n`, () => send(i + 1));
    };
    send(0);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  const replace = (next: StaticLog) => {
    log = next;
    asked = 0;
    files = toFiles(next);
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, replace };
}

function rowOf({ entries, index }: StaticLog, at: number): string | undefined {
  const event = index?.[at] ?? entries[at];
  if (event === undefined) return undefined;
  const { stream, eventId } = event;
  const named = typeof stream === 'number' ? { chamberId: stream, did: null } : { chamberId: null, did: stream };
  return `${JSON.stringify({ index: at, ...named, eventId })}\n`;
}

function treeOf(entries: readonly LoggedLine[]): GrowingTree {
  const tree = new GrowingTree(0, [], TREE);
  for (const { line } of entries) tree.add(leafHash(Buffer.from(line)));
  return tree;
}

/** Returns a signed checkpoint over these entries, possibly with a false size or for another log. */
export function noteOver(entries: readonly LoggedLine[], size = entries.length, origin = ORIGIN): string {
  const text = formatCheckpoint({ origin, size, root: treeOf(entries).root() });
  const key = toNoteKey(origin, NOTE_KEY_TYPES.ed25519, publicKeyOf(SEED));
  return formatNote({ text, signatures: [signNote(text, key, signWith(SEED))] });
}

function checkpointOf({ entries, sizes = [entries.length], size }: StaticLog, asked: number): string | undefined {
  const count = sizes[Math.min(asked, sizes.length - 1)];
  return count === undefined ? undefined : noteOver(entries.slice(0, count), size ?? count);
}

function toFiles({ entries, prefix = `/log/${STATIC_LOG_ID}` }: StaticLog) {
  const tree = treeOf(entries);
  const log = { logId: STATIC_LOG_ID, origin: ORIGIN, prefix, checkpointKey: formatVerifierKey(STATIC_LOG_KEY) };
  const tiles = new Map(tree.changedTiles().map(({ level, index, bytes }) => [`${level}/${index}`, bytes]));
  return (path: string): Buffer | string | undefined => {
    if (path === '/') return JSON.stringify({ log });
    const tile = parseTilePath(path.slice(`/log/${STATIC_LOG_ID}/`.length));
    const bytes = tile && tiles.get(`${tile.level}/${tile.index}`)?.subarray(0, tile.width * 32);
    if (tile === undefined || bytes === undefined) return undefined;
    return Buffer.from(tile.level === ENTRIES ? formatEntries(bytes) : bytes);
  };
}
