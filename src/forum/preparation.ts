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

export async function prepare(pending: PendingCommand, { log, streams, creations }: Parts): Promise<undefined> {
  const { command, response, seen } = pending;
  const [, chamberId] = pending.streams;
  const creator = command.operation === 'createChamber' ? command.caller.did : undefined;
  if (!pending.isHeld) {
    pending.isHeld = true;
    response.finally(streams.hold(pending.streams)).catch(() => {});
    if (creator !== undefined) await creations.turns.take(creator, response);
  }
  for (const stream of pending.streams) await streams.load(stream);
  if (creator !== undefined) pending.openChambers = await creations.countOpen(creator);
  if (seen === undefined || pending.seenLeaf !== undefined || chamberId === undefined) return;
  // The log has what other nodes have appended; the request came later than what its agent saw.
  const { ndjson } = await log.readPage(chamberId, seen.eventId - 1, 1);
  pending.seenLeaf = ndjson.length === 0 ? null : toHex(leafHash(ndjson.subarray(0, -1)));
}
