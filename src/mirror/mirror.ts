// Follows a log and keeps a verified copy: each leaf under a signed checkpoint has one line, with one position in one stream. A step ends with
// a verified folder, or with contradictory statements of the service, which the mirror writes to a file before it stops.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { consistencyProof, verifyConsistency } from '../crypto/merkle-proof.ts';
import { InvalidStub } from '../crypto/stub.ts';
import { forkProofByTiles, logIdOf } from '../tlog/misbehaviour.ts';
import { formatNote, type NoteKey, parseVerifierKey } from '../tlog/note.ts';
import { openCheckpoint, type SignedCheckpoint } from '../tlog/proof.ts';
import { ENTRIES, TILE_WIDTH, type Tile, tileAt, tilesBetween } from '../tlog/tile.ts';
import { type GrowingTree, nodesOfTiles, openGrowingTree, type ReadTiles } from '../tlog/tiled-tree.ts';
import { HASH_BYTES, TREE } from '../tlog/tree.ts';
import type { Millis } from '../vocabulary/values.ts';
import { evidenceOf } from './evidence.ts';
import { MirrorFolder } from './folder.ts';
import { LineFinder, Unexplained } from './line-finder.ts';
import { findOverdue, Missing, type OverdueLine } from './overdue.ts';
import { NoCheckpoint, NotServed, PublishedLog } from './published-log.ts';
import type { MirrorState } from './record.ts';
import { contradiction, isStub, type Stub, StubVerifier } from './stubs.ts';

/** A killed mirror loses at most this many leaves. A multiple of TILE_WIDTH, so that few partial tiles are written. */
const LEAVES_PER_BATCH = 4 * TILE_WIDTH;
const OVERDUE_CHECK_MS = 30_000;
/** Several times the service's interval between checkpoints, which is one second. */
const REST_MS = 5_000;
const GROWTH_MS_MAX = 60_000;
const POLL_MS = 500;

/** The service continues with a new log, so this mirror is complete. */
export class AnotherLog extends Error {}

/** The service has contradicted itself. `file` contains both statements; if both are signed, it proves misbehaviour. */
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
  /** The only trusted key; defaults to the key that the service names at the first step. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal;
  /** Accepts accounts without their first lines, which releases before schema 4 did not publish. */
  readonly allowUnpublished?: boolean | undefined;
  /** Keeps the lines that stubs replace in separate files. */
  readonly keepsOriginals?: boolean | undefined;
  readonly now?: () => Millis;
  /** How long a log with an overdue line may stop growing. */
  readonly restMs?: number;
}

export interface MirrorStep {
  readonly size: number;
  readonly added: number;
  /** The number of added lines that the service does not publish. */
  readonly unpublished: number;
  /** The number of held lines that stubs have replaced; absent if there were none. */
  readonly withheld?: number;
}

type KnownLog = Pick<MirrorState, 'url' | 'logId' | 'origin' | 'keys'>;

interface Batch {
  readonly log: KnownLog;
  readonly target: SignedCheckpoint;
  readonly prefix: string;
  readonly finder: LineFinder;
  readonly pending: readonly Uint8Array[];
  /** Includes the pending entries. */
  readonly tree: GrowingTree;
}

export class Mirror {
  readonly #options: MirrorOptions;
  readonly #log: PublishedLog;
  readonly #folder: MirrorFolder;
  #nextCheckAt = 0;

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

  /** Why all lines are fetched again; undefined if the folder was sound. */
  get damage(): string | undefined {
    return this.#folder.damage;
  }

  /** Extends the folder to the newest checkpoint. Rejects with NotServed, Undecided, Inconsistent or AnotherLog. */
  async step(): Promise<MirrorStep> {
    const first = await this.#advance().catch(orNoCheckpoint);
    if (!(first instanceof NoCheckpoint)) {
      const withheld = await this.#followStubs();
      if (withheld > 0) return { ...first, withheld };
    }
    const overdue = await this.#findOverdue();
    if (overdue !== undefined) return await this.#awaitCover(overdue, first);
    if (first instanceof NoCheckpoint) throw first;
    return first;
  }

  /** The check costs requests, so it runs every OVERDUE_CHECK_MS, or at the next step after a failure. */
  async #findOverdue(): Promise<OverdueLine | undefined> {
    const { now = Date.now, signal } = this.#options;
    if (performance.now() < this.#nextCheckAt) return undefined;
    const overdue = await findOverdue({ log: this.#log, folder: this.#folder, now: now(), signal }).catch(
      async (error: unknown) => {
        if (!(error instanceof Missing && error.isHeld)) throw error;
        const { message: problem, stream } = error;
        const content = { problem, checkpoint: this.#folder.state?.note ?? null, stream };
        throw new Inconsistent(problem, await this.#folder.keep('inconsistent-missing.json', content));
      },
    );
    this.#nextCheckAt = performance.now() + OVERDUE_CHECK_MS;
    return overdue;
  }

  /** Waits for a checkpoint that covers the line, but only while the log keeps growing. */
  async #awaitCover(
    { problem, stream, eventId, line }: OverdueLine,
    first: MirrorStep | NoCheckpoint,
  ): Promise<MirrorStep> {
    const { restMs = REST_MS, signal } = this.#options;
    const startedAt = performance.now();
    const steps = first instanceof NoCheckpoint ? [] : [first];
    for (let grewAt = startedAt; (this.#folder.endOf(stream)?.eventId ?? 0) < eventId; ) {
      const nowAt = performance.now();
      if (nowAt - grewAt > restMs || nowAt - startedAt > GROWTH_MS_MAX) {
        const content = { problem, checkpoint: this.#folder.state?.note ?? null, line };
        throw new Inconsistent(problem, await this.#folder.keep(`inconsistent-overdue-${eventId}.json`, content));
      }
      await sleep(Math.min(restMs, POLL_MS), undefined, { signal });
      const step = await this.#advance().catch(orNoCheckpoint);
      if (step instanceof NoCheckpoint) continue;
      steps.push(step);
      if (step.added > 0) grewAt = performance.now();
    }
    const sum = (member: 'added' | 'unpublished') => steps.reduce((total, step) => total + step[member], 0);
    return { size: this.#folder.state?.size ?? 0, added: sum('added'), unpublished: sum('unpublished') };
  }

  async #advance(): Promise<MirrorStep> {
    const { log, prefix } = await this.#known();
    const text = await this.#log.checkpoint(prefix);
    const served = openWith(log.keys, text);
    if (served === undefined) throw new NotServed('the checkpoint is not signed by a key of the log');
    const { state } = this.#folder;
    const size = state?.size ?? 0;
    const held = state && this.#held(state);
    // The service may return a cached, older checkpoint, and the folder may not have reached its own checkpoint. Both must belong to one tree.
    if (held !== undefined && (served.size <= held.size || size < held.size))
      await this.#requireSame(log, served, held);
    const target = held !== undefined && held.size > served.size ? held : served;
    if (target.size <= size) return { size, added: 0, unpublished: 0 };
    await this.#folder.dropLines();
    return await this.#extend(log, target, prefix);
  }

  /** The log's key may change; its id and origin never do. */
  async #known(): Promise<{ readonly log: KnownLog; readonly prefix: string }> {
    const { logId, origin, prefix, checkpointKey } = await this.#log.name();
    const { key = checkpointKey, url } = this.#options;
    if (parseVerifierKey(key)?.name !== origin) throw new NotServed(`the key ${key} is not one of the log ${origin}`);
    const { state } = this.#folder;
    if (state !== undefined && (state.logId !== logId || state.origin !== origin)) {
      throw new AnotherLog(
        `the service now has a new log, ${origin}: the folder keeps its copy of ${state.origin}; use another folder for the new log`,
      );
    }
    const before = state?.keys ?? [];
    return { log: { url, logId, origin, keys: before.includes(key) ? before : [...before, key] }, prefix };
  }

  async #requireSame({ keys }: KnownLog, served: SignedCheckpoint, held: SignedCheckpoint): Promise<void> {
    const [smaller, larger] = served.size <= held.size ? [served, held] : [held, served];
    if (smaller.size === 0) return;
    const size = this.#folder.state?.size ?? 0;
    const ownTile = (tile: Tile) => this.#folder.readTile(tile);
    const prefix = `/log/${logIdOf(held.origin)}`;
    const readTile = larger.size <= size ? ownTile : (tile: Tile) => this.#log.tile(prefix, tile);
    const proof = await forkProofByTiles([smaller, larger], keys, readTile).catch((error: unknown) => {
      throw toNotServed(error, `the tiles of the log of size ${larger.size}`);
    });
    if (proof === undefined) return;
    const file = await this.#folder.keep(`inconsistent-${smaller.size}-${larger.size}.json`, proof);
    const problem =
      smaller === served
        ? `the root of the checkpoint of size ${served.size} differs from that of the folder’s lines`
        : `the log of size ${larger.size} does not extend the one of size ${smaller.size}`;
    throw new Inconsistent(problem, file);
  }

  /** Replaces the lines that the service has withheld since the last step. Resolves to their number. */
  async #followStubs(): Promise<number> {
    const { state } = this.#folder;
    if (state === undefined) return 0;
    const verifier = new StubVerifier(this.#log, state.logId);
    const prefix = `/log/${state.logId}`;
    let { count, last } = state.stubs ?? { count: 0, last: '' };
    let replaced = 0;
    for (;;) {
      // Reads the last known stub again, because the list may differ after a restore of the service.
      const page = await this.#log.stubs(prefix, Math.max(0, count - 1));
      if (page === undefined) return replaced;
      const isKnown = count === 0 || Buffer.from(page[0] ?? []).toString() === last;
      if (!isKnown) {
        [count, last] = [0, ''];
        continue;
      }
      const lines = count === 0 ? page : page.slice(1);
      const newest = lines.at(-1);
      if (newest === undefined) return replaced;
      await verifier.prepare(lines);
      [count, last] = [count + lines.length, Buffer.from(newest).toString()];
      replaced += await this.#takeStubs(lines, verifier, { count, last });
    }
  }

  async #takeStubs(
    lines: readonly Uint8Array[],
    verifier: StubVerifier,
    taken: NonNullable<MirrorState['stubs']>,
  ): Promise<number> {
    const stubs = new Map<string, Stub>();
    for (const line of lines) {
      const stub = await this.#readStub(line, verifier);
      stubs.set(`${stub.stream}:${stub.eventId}`, stub);
    }
    return await this.#folder.replaceLines(async (held) => {
      const place = PLACE.exec(held);
      const stub = place === null ? undefined : stubs.get(`${place[1] === 'null' ? place[2] : place[1]}:${place[3]}`);
      if (stub === undefined || stub.line === held) return undefined;
      const problem = contradiction(held, stub);
      if (problem !== undefined) throw await this.#keepStub(problem, stub.line, held);
      if (isStub(Buffer.from(held))) return undefined;
      if (this.#options.keepsOriginals === true) await this.#folder.keepOriginal(stub.stream, stub.eventId, held);
      return stub.line;
    }, taken);
  }

  async #readStub(line: Uint8Array, verifier: StubVerifier): Promise<Stub> {
    try {
      return verifier.read(line);
    } catch (error) {
      const text = Buffer.from(line).toString();
      if (error instanceof InvalidStub)
        throw await this.#keepStub(`the list of withheld lines: one ${error.message}`, text, null);
      throw new NotServed(`the list of withheld lines: ${(error as Error).message}`, { cause: error });
    }
  }

  async #keepStub(problem: string, stub: string, line: string | null): Promise<Inconsistent> {
    return new Inconsistent(problem, await this.#folder.keep('inconsistent-stub.json', { problem, stub, line }));
  }

  #held({ keys, note }: MirrorState): SignedCheckpoint {
    const held = openWith(keys, note);
    if (held === undefined) throw new Error('the folder’s own checkpoint is not signed by a key of the log');
    return held;
  }

  /** Works in batches. After each, the folder has a verified prefix of the checkpoint's leaves. */
  async #extend(log: KnownLog, target: SignedCheckpoint, prefix: string): Promise<MirrorStep> {
    const before = this.#folder.state?.size ?? 0;
    const tree = await openGrowingTree(before, this.#folder.readTiles);
    const stubs = new StubVerifier(this.#log, log.logId);
    const finder = new LineFinder(this.#log, this.#folder, { ...this.#options, stubs });
    let pending: Uint8Array[] = [];
    const finish = async () => {
      await this.#requirePrefix(log, tree, target, prefix);
      await this.#append({ finder, prefix, pending, log, target, tree });
      pending = [];
    };
    for (const tile of tilesBetween(ENTRIES, before, target.size)) {
      const entries = await this.#log.tile(prefix, tile);
      // The first tile may begin with entries that the folder already has.
      for (let i = tree.size - tile.index * TILE_WIDTH; i < tile.width; i++) {
        const entry = entries.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES);
        tree.add(entry);
        pending.push(entry);
        if (pending.length === LEAVES_PER_BATCH) await finish();
      }
    }
    if (pending.length > 0) await finish();
    return { size: target.size, added: target.size - before, unpublished: finder.unpublished };
  }

  async #append({ finder, prefix, pending, log, target, tree }: Batch): Promise<void> {
    const formerSize = this.#folder.state?.size ?? 0;
    try {
      await finder.append(prefix, tree.size - pending.length, pending);
    } catch (error) {
      if (error instanceof Unexplained) throw await this.#keepEvidence(error, { log, target, prefix });
      throw error;
    }
    await this.#folder.writeTiles(tree.changedTiles());
    tree.takeFullTiles();
    const { isLaterRelease } = finder;
    const note = formatNote(target.note);
    await this.#folder.commit({ ...log, size: tree.size, note, isLaterRelease }, finder.takeEnds());
    if (tree.size === target.size) await this.#folder.publishCheckpoint();
    await this.#folder.removeTiles(formerSize);
  }

  async #keepEvidence(
    error: Unexplained,
    { log, target, prefix }: Pick<Batch, 'log' | 'target' | 'prefix'>,
  ): Promise<Inconsistent> {
    const content = await evidenceOf(error, {
      checkpoint: target,
      keys: log.keys,
      readTile: (tile) => this.#log.tile(prefix, tile),
      lines: () => createInterface({ input: createReadStream(this.#folder.linesFile), crlfDelay: Infinity }),
    });
    return new Inconsistent(
      error.message,
      await this.#folder.keep(`inconsistent-line-${error.leaf.index}.json`, content),
    );
  }

  /** Requires that the leaves are a prefix of the checkpoint's. Otherwise the log has forked, or the service does not serve its own tree. */
  async #requirePrefix(log: KnownLog, tree: GrowingTree, target: SignedCheckpoint, prefix: string): Promise<void> {
    const { size, root: toRoot } = target;
    const problem = `the root of the entries differs from the checkpoint of size ${size}`;
    const claim = { from: tree.size, to: size, fromRoot: tree.root(), toRoot, hashNodes: TREE.hashNodes };
    const proof = tree.size === size ? [] : await this.#consistency(tree.size, size, prefix);
    if (verifyConsistency({ ...claim, proof })) return;
    const { state } = this.#folder;
    if (state === undefined) throw new NotServed(problem);
    await this.#requireSame(log, target, this.#held(state));
    throw new NotServed(problem);
  }

  async #consistency(from: number, to: number, prefix: string): Promise<readonly Uint8Array[]> {
    const readTiles: ReadTiles = (refs) =>
      Promise.all(refs.map((ref) => this.#log.tile(prefix, tileAt(ref, to) as Tile)));
    return await consistencyProof(from, to, nodesOfTiles(readTiles), TREE.hashNodes);
  }
}

/** Matches chamber, DID and event id of a canonical line, which begins with them. */
const PLACE = /^\{"chamberId":(\d+|null),"did":(?:null|"([^"]*)"),"eventId":(\d+),/;

function orNoCheckpoint(error: unknown): NoCheckpoint {
  if (error instanceof NoCheckpoint) return error;
  throw error;
}

function openWith(keys: readonly string[], note: string): SignedCheckpoint | undefined {
  for (const key of keys) {
    const opened = openCheckpoint(note, toKey(key));
    if (opened !== undefined) return opened;
  }
  return undefined;
}

/** Tiles that don't match their checkpoint can't prove anything. */
function toNotServed(error: unknown, what: string): unknown {
  return error instanceof NotServed ? error : new NotServed(`${what}: ${(error as Error).message}`, { cause: error });
}

function toKey(text: string): NoteKey {
  const key = parseVerifierKey(text);
  if (key === undefined) throw new NotServed(`${text} is not a verifier key`);
  return key;
}
