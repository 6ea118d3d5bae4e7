// Loads the data that a decision depends on into memory: the command's streams, the number of the creator's open chambers for a creation, and
// the events that a move names.
import { storedLeaf } from '../crypto/stub.ts';
import type { EventLog } from '../log/log.ts';
import type { StreamId } from '../log/stream-id.ts';
import { takesReplies } from '../moves/registry.ts';
import { type ChamberEvent, fromLine } from '../vocabulary/events.ts';
import { toHex } from '../vocabulary/values.ts';
import type { PendingCommand, Readings } from './batch.ts';
import type { Creations } from './creations.ts';
import type { Streams } from './streams.ts';

interface Parts {
  readonly log: EventLog;
  readonly streams: Streams;
  readonly creations: Creations;
}

export async function prepare(pending: PendingCommand, { log, streams, creations }: Parts): Promise<Readings> {
  const { command, response, seenEventId, replyTo, readings } = pending;
  const [, chamberId] = pending.streams;
  const creator = command.operation === 'createChamber' ? command.caller.did : undefined;
  if (!readings.isPinned) {
    response.finally(streams.pin(pending.streams)).catch(() => {});
    if (creator !== undefined) await creations.begin(creator, response);
  }
  for (const stream of pending.streams) await streams.load(stream);
  const openChambers = creator === undefined ? undefined : await creations.countOpen(creator);
  let { seenLeaf, takesReply } = readings;
  if (chamberId !== undefined && seenEventId !== undefined && seenLeaf === undefined) {
    const line = await readLine(log, chamberId, seenEventId);
    seenLeaf = line === undefined ? null : toHex(storedLeaf(line));
  }
  if (chamberId !== undefined && replyTo !== undefined && takesReply === undefined) {
    const line = await readLine(log, chamberId, replyTo);
    takesReply = line !== undefined && takesReplies(fromLine(line.toString()) as ChamberEvent);
  }
  return { ...readings, isPinned: true, openChambers, seenLeaf, takesReply };
}

/** One read suffices: the log includes events of other nodes, and the event that a move names precedes its request. */
async function readLine(log: EventLog, chamberId: StreamId, eventId: number): Promise<Buffer | undefined> {
  const { ndjson } = await log.readPage(chamberId, eventId - 1, 1);
  return ndjson.length === 0 ? undefined : ndjson.subarray(0, -1);
}
