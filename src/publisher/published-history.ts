// The largest checkpoint of its log that this node has seen, in memory and in its copy. A database that does not extend it has a second
// history, for example after the promotion of a standby that lacked lines. Invariants:
//
// 1. A new connection is used only after a proof that its log extends the checkpoint, so no move is accepted on a second history.
// 2. Each signature follows such a proof over the connection that stores the signature (PublishedTree.pinned), so no failover can happen
//    between the proof and the signature.
// 3. A checkpoint is served only after it was proved, confirmed and copied, so a restart forgets no served checkpoint, and a node whose
//    log is behind keeps serving its last one.
// 4. The copy only grows. Nodes may share the file, so a checkpoint that another node wrote counts as seen.
import { consistencyProof, verifyConsistency } from '../crypto/merkle-proof.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import type { PublishedTree, StoredCheckpoint } from '../log/published-tree.ts';
import { type Checkpoint, parseCheckpoint } from '../tlog/checkpoint.ts';
import { parseNote } from '../tlog/note.ts';
import { nodesOfTiles, rootOfTiles } from '../tlog/tiled-tree.ts';
import { TREE } from '../tlog/tree.ts';
import { openCopy, readCheckpointCopy, writeCheckpointCopy } from './checkpoint-copy.ts';
import { grow, openStoredTree, TreeDamaged } from './publisher.ts';

const ADVICE =
  'restore a newer copy of the database, or continue as another log: chambers new-log gives it a new logId and keeps this checkpoint';

/** The log does not extend the published one. The node accepts no moves and signs nothing until an operator has fixed this. */
export class SecondHistory extends Error {}

interface HistoryOptions {
  readonly logId: string;
  /** The file of the copy; undefined for a log in memory. */
  readonly path: string | undefined;
  /** All keys that have signed checkpoints of the log. */
  readonly keys: () => readonly Pick<ServiceKey, 'publicKey'>[];
}

interface SeenCheckpoint extends Pick<Checkpoint, 'size' | 'root'> {
  readonly note: string;
}

export class PublishedHistory {
  readonly #options: HistoryOptions;
  #latest: SeenCheckpoint | undefined;
  #problem: SecondHistory | undefined;
  /** Serialises calls of `keep`, so that none replaces a newer checkpoint. */
  #keeping: Promise<void> = Promise.resolve();

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Resolves to the checkpoint to serve: the stored one, or the last served one if the stored log does not extend it. */
  async newest(tree: PublishedTree): Promise<StoredCheckpoint | undefined> {
    const stored = await tree.checkpoint();
    if (stored === undefined || stored.note === this.#latest?.note) return this.#latest;
    try {
      await this.keep(tree);
    } catch (error) {
      if (this.#latest === undefined) throw error;
    }
    return this.#latest;
  }

  /** The result of the latest proof. */
  get problem(): SecondHistory | undefined {
    return this.#problem;
  }

  /** Resolves to the stored checkpoint. Rejects with SecondHistory if the log does not extend the published one. */
  async prove(tree: PublishedTree): Promise<SeenCheckpoint | undefined> {
    try {
      const stored = await this.#prove(tree);
      this.#problem = undefined;
      return stored;
    } catch (error) {
      if (error instanceof SecondHistory) this.#problem = error;
      throw error;
    }
  }

  async #prove(tree: PublishedTree): Promise<SeenCheckpoint | undefined> {
    const copy = await this.#readCopy(tree);
    const stored = toSeen(await tree.checkpoint());
    for (const seen of [copy, this.#latest]) if (seen !== undefined) await this.#requireExtends(tree, stored, seen);
    return stored;
  }

  /** Proves and copies the stored checkpoint, which may be served afterwards. */
  keep(tree: PublishedTree): Promise<void> {
    const kept = this.#keeping.then(() => tree.onOneServer((pinned) => this.#keep(pinned)));
    this.#keeping = kept.catch(() => {});
    return kept;
  }

  async #keep(tree: PublishedTree): Promise<void> {
    const stored = await this.prove(tree);
    if (stored === undefined || stored.size < (this.#latest?.size ?? 0)) return;
    if (stored.note !== this.#latest?.note) await tree.confirm();
    const { path } = this.#options;
    try {
      if (path !== undefined && this.#isNew(path, stored)) await writeCheckpointCopy(path, stored.note);
    } finally {
      // If the copy can't be written, readers must still get the checkpoint.
      this.#latest = stored;
    }
  }

  /** Another node that shares the file may have written a newer checkpoint. */
  #isNew(path: string, { note, size }: SeenCheckpoint): boolean {
    const written = readCheckpointCopy(path);
    if (written === note) return false;
    const copy = written === undefined ? undefined : openCopy(written, this.#options.keys());
    return copy === undefined || copy.logId !== this.#options.logId || copy.size <= size;
  }

  /** Resolves to undefined if there is no copy of this log. */
  async #readCopy(tree: PublishedTree): Promise<SeenCheckpoint | undefined> {
    const { path, keys, logId } = this.#options;
    const note = path === undefined ? undefined : readCheckpointCopy(path);
    if (note === undefined || note === this.#latest?.note) return undefined;
    const copy = openCopy(note, keys());
    if (copy === undefined) {
      throw new Error(`${path} is not a checkpoint signed by a key of this log: move it away if it was damaged`);
    }
    if (copy.logId === logId) return { ...copy, note };
    // After new-log was run on another node, this node's copy still belongs to the old log.
    if (((await tree.checkpoint(copy.logId))?.size ?? 0) >= copy.size) return undefined;
    throw new SecondHistory(
      `${path} is a checkpoint of log ${copy.logId}, but the database has log ${logId}: ${ADVICE}`,
    );
  }

  async #requireExtends(tree: PublishedTree, stored: SeenCheckpoint | undefined, seen: SeenCheckpoint): Promise<void> {
    if (stored?.note === seen.note) return;
    const { lines, isExtended } =
      stored !== undefined && stored.size >= seen.size
        ? { lines: stored.size, isExtended: await isConsistent(tree, seen, stored) }
        : await isPrefix(tree, stored, seen);
    if (isExtended) return;
    const name = this.#options.path ?? 'that this node has seen';
    throw new SecondHistory(
      lines < seen.size
        ? `the log has ${lines} lines, and the checkpoint ${name} was published over ${seen.size}: ${ADVICE}`
        : `the checkpoint ${name} was published over other lines than the first ${seen.size} of the log: ${ADVICE}`,
    );
  }
}

function toSeen(stored: StoredCheckpoint | undefined): SeenCheckpoint | undefined {
  if (stored === undefined) return undefined;
  const note = parseNote(stored.note);
  const checkpoint = note && parseCheckpoint(note.text);
  if (checkpoint?.size !== stored.size) throw new TreeDamaged('the stored checkpoint is invalid');
  return { ...checkpoint, note: stored.note };
}

/** Whether the stored tree extends the seen one. Rejects with TreeDamaged if its tiles do not have its root. */
async function isConsistent({ readTiles }: PublishedTree, seen: SeenCheckpoint, stored: SeenCheckpoint) {
  try {
    const [from, to] = [seen.size, stored.size];
    const proof = from === 0 ? [] : await consistencyProof(from, to, nodesOfTiles(readTiles), TREE.hashNodes);
    const claim = { from, to, fromRoot: seen.root, toRoot: stored.root, proof, hashNodes: TREE.hashNodes };
    if (from === 0 || verifyConsistency(claim)) return true;
    if (Buffer.compare(await rootOfTiles(to, readTiles), stored.root) === 0) return false;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new TreeDamaged(error.message, { cause: error });
  }
  throw new TreeDamaged(`the tiles do not have the root of the checkpoint of size ${stored.size}`);
}

/** Whether the log still has the lines of the seen checkpoint, even if the database has lost the checkpoint itself. */
async function isPrefix(tree: PublishedTree, stored: StoredCheckpoint | undefined, { size, root }: SeenCheckpoint) {
  const growing = await openStoredTree(tree, stored);
  await grow(growing, tree, size);
  return { lines: growing.size, isExtended: growing.size === size && Buffer.compare(growing.root(), root) === 0 };
}
