// A witness (c2sp.org/tlog-witness): it cosigns a checkpoint if that extends the last one of the same log that it cosigned. It remembers
// one size and root for each log, and never goes back.
import { verifyConsistency } from '../crypto/merkle-proof.ts';
import { parseAddCheckpoint, TLOG_SIZE } from '../tlog/add-checkpoint.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { forkProof, type Misbehaviour } from '../tlog/misbehaviour.ts';
import {
  cosignNote,
  formatSignatureLine,
  formatVerifierKey,
  type NoteKey,
  openNote,
  parseNote,
  type Sign,
} from '../tlog/note.ts';
import { openCheckpoint } from '../tlog/proof.ts';
import { EMPTY_ROOT, TREE } from '../tlog/tree.ts';

/** The tree of the last checkpoint that was cosigned. */
export interface WitnessedTree {
  readonly size: number;
  readonly root: Uint8Array;
  /** The note as the log signed it. */
  readonly note: string;
}

export interface WitnessOptions {
  readonly key: NoteKey;
  readonly sign: Sign;
  /** The logs that it watches, by the names of their keys, which are their origins. */
  readonly logs: readonly NoteKey[];
  readonly recall: (origin: string) => WitnessedTree | undefined;
  /** Durable when it returns. */
  readonly remember: (origin: string, tree: WitnessedTree) => void;
  /** The clock, in seconds since 1970. */
  readonly now: () => number;
  /** Called with the proof that a log forked, when a request shows that. */
  readonly onFork?: ((proof: Misbehaviour) => void) | undefined;
}

export interface WitnessReply {
  readonly status: 200 | 400 | 403 | 404 | 409 | 422;
  readonly type: string;
  readonly body: string;
}

const NEVER: WitnessedTree = { size: 0, root: EMPTY_ROOT, note: '' };
const TEXT = 'text/plain; charset=utf-8';

/** Nothing is suspended between the look at the last checkpoint and the new one's being remembered. */
export function addCheckpoint(options: WitnessOptions, request: string): WitnessReply {
  const { key, sign, logs, recall, remember, now } = options;
  const added = parseAddCheckpoint(request);
  const note = added && parseNote(added.note);
  const checkpoint = note && parseCheckpoint(note.text);
  if (added === undefined || note === undefined || checkpoint === undefined) {
    return refuse(400, 'the body is not that of add-checkpoint');
  }
  const { origin, size, root } = checkpoint;
  const keys = logs.filter(({ name }) => name === origin);
  if (keys.length === 0) return refuse(404, 'the log is not known');
  if (openNote(note, keys) === undefined) return refuse(403, 'the checkpoint is not signed by a key of the log');
  const { oldSize, proof } = added;
  if (oldSize > size) return refuse(400, 'the old size is larger than that of the checkpoint');
  const last = recall(origin) ?? NEVER;
  if (oldSize !== last.size) return { status: 409, type: TLOG_SIZE, body: `${last.size}\n` };
  const refuseFork = (status: 409 | 422, reason: string) => {
    const fork = forkIn({ keys, last, note: added.note, proof });
    if (fork !== undefined) options.onFork?.(fork);
    return refuse(status, reason);
  };
  if (size === last.size && Buffer.compare(root, last.root) !== 0) {
    return refuseFork(409, 'another root was cosigned at this size');
  }
  const claim = { from: oldSize, to: size, fromRoot: last.root, toRoot: root, proof, hashNodes: TREE.hashNodes };
  const isExtended = oldSize === 0 ? proof.length === 0 : verifyConsistency(claim);
  if (!isExtended) return refuseFork(422, 'the proof does not show that the checkpoint extends the last one');
  remember(origin, { size, root, note: added.note });
  return { status: 200, type: TEXT, body: formatSignatureLine(cosignNote(note.text, key, now(), sign)) };
}

interface Refused {
  readonly keys: readonly NoteKey[];
  readonly last: WitnessedTree;
  readonly note: string;
  readonly proof: readonly Uint8Array[];
}

/**
 * The proof that the log forked, if what was sent shows it: the sizes are equal, or the log itself has proved its extension of another
 * tree. The last size is no power of two then, because a proof would lack the root at that size.
 */
function forkIn({ keys, last, note, proof }: Refused): Misbehaviour | undefined {
  const open = (text: string) => keys.map((key) => openCheckpoint(text, key)).find((opened) => opened !== undefined);
  const [smaller, larger] = [open(last.note), open(note)];
  if (smaller === undefined || larger === undefined) return undefined;
  return forkProof([smaller, larger], keys.map(formatVerifierKey), proof);
}

function refuse(status: WitnessReply['status'], reason: string): WitnessReply {
  return { status, type: TEXT, body: `${reason}\n` };
}
