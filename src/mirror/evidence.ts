// Builds the file that a mirror keeps about an entry that no line explains: a proof of misbehaviour if the log has two lines of one event, or
// one line twice; otherwise evidence.
import { lineLeaf } from '../crypto/stub.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { entryEvidence, type PublishedEntries, proveEntry } from '../tlog/entry-evidence.ts';
import { positionOfLine } from '../tlog/leaf-index.ts';
import { MISBEHAVIOUR, type Misbehaviour, verifyMisbehaviour } from '../tlog/misbehaviour.ts';
import type { Unexplained } from './line-finder.ts';

export interface MirroredLog extends PublishedEntries {
  /** The verified lines before the entry, in the order of the tree. */
  readonly lines: () => AsyncIterable<string>;
}

/** Resolves to the content of the file. */
export async function evidenceOf(unexplained: Unexplained, log: MirroredLog): Promise<object> {
  const { message: problem, leaf, entry, line } = unexplained;
  const served = line === undefined ? null : Buffer.from(line).toString();
  const proof = await twoLines(unexplained, served, log).catch(() => undefined);
  return proof ?? (await entryEvidence({ problem, leaf, entry, line: served }, log));
}

/** Pairs the entry's line, if the service returned it or the log already has it, with the earlier line of the same event. */
async function twoLines({ leaf, entry }: Unexplained, served: string | null, log: MirroredLog) {
  const isEntry = (text: string) => Buffer.compare(lineLeaf(Buffer.from(text)), entry) === 0;
  const { stream, eventId } = (served !== null && isEntry(served) && positionOf(served)) || leaf;
  let index = 0;
  for await (const earlier of log.lines()) {
    const position = index === leaf.index ? undefined : positionOf(earlier);
    if (position?.stream === stream && position.eventId === eventId) {
      const own = [served, earlier].find((text) => text !== null && isEntry(text));
      if (typeof own !== 'string') return undefined;
      const tlogProofs: [string, string] = [await proveEntry(index, log), await proveEntry(leaf.index, log)];
      const keys = [...log.keys];
      const proof: Misbehaviour = { format: MISBEHAVIOUR, kind: 'two-lines', lines: [earlier, own], tlogProofs, keys };
      await verifyMisbehaviour(proof);
      return proof;
    }
    index++;
  }
  return undefined;
}

function positionOf(line: string) {
  return positionOfLine(line, READ_LIMITS.jsonValuesMax);
}
