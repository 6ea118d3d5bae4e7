// Reads a service's published log within limits. Responses are untrusted: the mirror verifies them.
import { DIRECTORY_PATH, type KeyDirectory, parseDirectory } from '../crypto/key-directory.ts';
import { LimitError, READ_LIMITS } from '../reading/limits.ts';
import { type OpenResponse, openResponse } from '../reading/response.ts';
import { type IndexedLeaf, parseIndexedLeaf, type Stream } from '../tlog/leaf-index.ts';
import { NOTE_BYTES_MAX } from '../tlog/note.ts';
import { ENTRIES, parseEntries, type Tile, tilePath } from '../tlog/tile.ts';
import { HASH_BYTES } from '../tlog/tree.ts';
import { parseJson } from '../vocabulary/json.ts';
import { LOG_ID } from '../vocabulary/values.ts';

/** The service returned no response or an invalid one. A retry may succeed. */
export class NotServed extends Error {
  /** The status of the response, if it was not 200. */
  readonly status: number | undefined;

  constructor(problem: string, { status, ...options }: ErrorOptions & { readonly status?: number } = {}) {
    super(problem, options);
    this.status = status;
  }
}

/** The service has not signed a checkpoint yet, or hides it. */
export class NoCheckpoint extends NotServed {}

/** The requested lines exceed the memory limit. */
export class TooLong extends NotServed {}

/** `log` of `GET /`. */
export interface LogName {
  readonly logId: string;
  readonly origin: string;
  readonly prefix: string;
  readonly checkpointKey: string;
}

interface LineRange {
  readonly after: number;
  readonly count: number;
  readonly bytesMax: number;
}

const TILE_BYTES_MAX = 16_384;
const OK = 200;
const NOT_FOUND = 404;
const STUBS_MAX = 1_000;
/** The page size of the list. */
export const CHAMBERS_MAX = 200;

export class PublishedLog {
  readonly #baseUrl: string;
  readonly #signal: AbortSignal | undefined;

  constructor(baseUrl: string, signal?: AbortSignal) {
    this.#baseUrl = baseUrl.replace(/(?<!\/)\/+$/, '');
    this.#signal = signal;
  }

  async name(): Promise<LogName> {
    const { log } = (await this.#json('/')) as { readonly log?: Partial<LogName> };
    const { logId, origin, prefix, checkpointKey } = log ?? {};
    if (![logId, origin, prefix, checkpointKey].every((member) => typeof member === 'string'))
      throw new NotServed('the service names no log at GET /: it may be an earlier release');
    // The prefix becomes part of URLs.
    if (!LOG_ID.test(`${logId}`) || prefix !== `/log/${logId}`)
      throw new NotServed('the log that the service names at GET / is not under /log/<logId>');
    return log as LogName;
  }

  /** Rejects with NoCheckpoint. */
  checkpoint(prefix: string): Promise<string> {
    return this.#text(`${prefix}/checkpoint`, NOTE_BYTES_MAX).catch((error: unknown) => {
      const isAbsent = error instanceof NotServed && error.status === NOT_FOUND;
      throw isAbsent ? new NoCheckpoint(error.message, { status: NOT_FOUND, cause: error }) : error;
    });
  }

  /** Reads the ids of the newest chambers, newest first. */
  async chambers(): Promise<readonly number[]> {
    const list = await this.#json(`/chambers?limit=${CHAMBERS_MAX}`);
    const ids = Array.isArray(list) ? list.map(chamberIdIn) : [undefined];
    const isList = ids.length <= CHAMBERS_MAX && ids.every((id, i) => isId(id) && (i === 0 || id < Number(ids[i - 1])));
    if (!isList) throw new NotServed('GET /chambers did not return a list of chambers, newest first');
    return ids as readonly number[];
  }

  /** Resolves to the concatenated hashes or entries. */
  async tile(prefix: string, tile: Tile): Promise<Uint8Array> {
    const path = `${prefix}/${tilePath(tile)}`;
    const bytes = await this.#read(path, (response) => response.bytes({ responseBytesMax: TILE_BYTES_MAX }));
    const hashes = tile.level === ENTRIES ? parseEntries(bytes) : bytes;
    if (hashes?.length === tile.width * HASH_BYTES) return hashes;
    throw new NotServed(`GET ${path} did not return a tile of ${tile.width} hashes`);
  }

  /** Reads `count` leaves from index `after`. */
  async leaves(prefix: string, after: number, count: number): Promise<readonly IndexedLeaf[]> {
    const path = `${prefix}/index?after=${after}&limit=${count}`;
    const lines = await this.#lines(path, count, READ_LIMITS.responseBytesMax);
    const leaves = lines.map((line) => parseIndexedLeaf(Buffer.from(line).toString()));
    const isWhole = leaves.length === count && leaves.every((leaf, i) => leaf?.index === after + i);
    if (!isWhole) throw new NotServed(`GET ${path} did not return the requested leaves`);
    return leaves as readonly IndexedLeaf[];
  }

  /** Reads the stubs after the first `after`, in the order of withholding. Resolves to undefined if the release has no such list. */
  async stubs(prefix: string, after: number): Promise<readonly Uint8Array[] | undefined> {
    const path = `${prefix}/withheld?after=${after}&limit=${STUBS_MAX}`;
    return await this.#lines(path, STUBS_MAX, READ_LIMITS.responseBytesMax).catch((error: unknown) => {
      if (error instanceof NotServed && error.status === NOT_FOUND) return undefined;
      throw error;
    });
  }

  async keyDirectory(): Promise<KeyDirectory> {
    return parseDirectory(await this.#json(DIRECTORY_PATH));
  }

  /** Reads the lines of a stream after an event, without line breaks. Rejects with TooLong. */
  events(stream: Stream, { after, count, bytesMax }: LineRange) {
    const owner = typeof stream === 'string' ? `/agents/${stream}` : `/chambers/${stream}`;
    return this.#lines(`${owner}/events?after=${after}&limit=${count}`, count, bytesMax);
  }

  async #lines(path: string, countMax: number, bytesMax: number): Promise<readonly Uint8Array[]> {
    return await this.#read(path, async (response) => {
      const lines: Uint8Array[] = [];
      let held = 0;
      for await (const { bytes, isEnded } of response.lines(READ_LIMITS)) {
        if (!isEnded || lines.length === countMax)
          throw new NotServed(`GET ${path} returned an incomplete line or too many lines`);
        held += bytes.length;
        if (held > bytesMax) throw new TooLong(`GET ${path} returned more than ${bytesMax} bytes`);
        // Copied, because the reader reuses its buffer.
        lines.push(Uint8Array.from(bytes));
      }
      return lines;
    });
  }

  async #json(path: string): Promise<unknown> {
    const text = await this.#text(path, READ_LIMITS.responseBytesMax);
    try {
      return parseJson(text, READ_LIMITS.jsonValuesMax);
    } catch {
      throw new NotServed(`GET ${path} did not return JSON`);
    }
  }

  #text(path: string, responseBytesMax: number): Promise<string> {
    return this.#read(path, (response) => response.text({ responseBytesMax }));
  }

  async #read<Result>(path: string, take: (response: OpenResponse) => Promise<Result>): Promise<Result> {
    const deadlines = { signal: this.#signal, wholeMillisMax: READ_LIMITS.responseMillisMax };
    try {
      const headers = { accept: 'application/json, application/x-ndjson, */*;q=0.5' };
      const response = await openResponse(fetch, this.#baseUrl + path, { headers }, deadlines);
      if (response.status === OK) return await take(response);
      response.close();
      throw new NotServed(`GET ${path} returned ${response.status}`, { status: response.status });
    } catch (error) {
      if (error instanceof NotServed || this.#signal?.aborted) throw error;
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const reason = error instanceof LimitError ? error.message : (cause as Error).message;
      throw new NotServed(`GET ${path}: ${reason}`, { cause: error });
    }
  }
}

function chamberIdIn(item: unknown): unknown {
  return (Object(item) as { readonly chamberId?: unknown }).chamberId;
}

function isId(id: unknown): id is number {
  return Number.isSafeInteger(id) && (id as number) > 0;
}
