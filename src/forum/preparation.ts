// Brings into memory what a command is decided on: its streams, for a creation its creator's open chambers, and the event that its agent
// had seen.
import { leafHash } from '../crypto/merkle.ts';
import type { EventLog } from '../log/log.ts';
import { toHex } from '../vocabulary/values.ts';
import type { PendingCommand } from './batch.ts';
import type { Creations } from './creations.ts';
import type { Streams } from './streams.ts';

interface Parts {
  readonly log: EventLog;
  readonly streams: Streams;
  readonly creations: Creations;
}

export class Preparation {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async prepare(pending: PendingCommand): Promise<void> {
    const { command, streams, response } = pending;
    const { streams: memory, creations } = this.#parts;
    const creator = command.operation === 'createChamber' ? command.caller.did : undefined;
    if (!pending.isHeld) {
      pending.isHeld = true;
      response.finally(memory.hold(streams)).catch(() => {});
      if (creator !== undefined) await creations.takeTurn(creator, response);
    }
    for (const stream of streams) await memory.load(stream);
    if (creator !== undefined) pending.openChambers = await creations.countOpen(creator);
    await this.#readSeen(pending);
  }

  /** Reads the log, which has what other nodes have appended; the request came later than what its agent saw. */
  async #readSeen(pending: PendingCommand): Promise<void> {
    const { streams, seen, seenLeaf } = pending;
    const [, chamberId] = streams;
    if (seen === undefined || seenLeaf !== undefined || chamberId === undefined) return;
    const { ndjson } = await this.#parts.log.readPage(chamberId, seen.eventId - 1, 1);
    pending.seenLeaf = ndjson.length === 0 ? null : toHex(leafHash(ndjson.subarray(0, -1)));
  }
}
