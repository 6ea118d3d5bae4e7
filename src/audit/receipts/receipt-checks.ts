// What the service has promised in receipts of one stream, compared with its lines.
import { parseSignature, SignatureError } from '../../crypto/http-signature.ts';
import { type KeyDirectory, keyProblem } from '../../crypto/key-directory.ts';
import { leafHash } from '../../crypto/merkle.ts';
import type { KeptReceipt, ReceiptRequest } from '../../crypto/receipt.ts';
import { MISBEHAVIOUR, type Misbehaviour } from '../../tlog/misbehaviour.ts';
import type { ForumEvent } from '../../vocabulary/events.ts';
import { type Hex, toHex } from '../../vocabulary/values.ts';
import type { Position } from '../chamber/sequence.ts';
import type { RawLine } from '../line/input.ts';
import type { LineRecord } from '../line/record.ts';
import { type Findings, type Problem, type Verdict, verdictOfProblem } from '../report/findings.ts';
import { eventKey, type GivenReceipt, type GivenReceipts } from './given-receipts.ts';
import { type ProofFolder, provedBy } from './proof-folder.ts';

/** What is known of the service's keys and its log. */
export interface ReceiptTerms {
  /** Undefined for a file: then the key that the chamber pins is the only one that is known. */
  readonly directory?: KeyDirectory | undefined;
  readonly logId?: string;
}

export interface JudgedReceipt extends GivenReceipt {
  /** Whether a key of the service has signed it, for the log of the lines. */
  readonly isOfService: boolean;
  readonly problem: Problem;
  readonly verdict: Verdict;
  /** Why it is not verified. */
  readonly reason: string | null;
  /** The line that is there; undefined where there is none. */
  readonly line: string | undefined;
}

interface Met {
  readonly leaf: Hex;
  readonly line: string;
  /** The signature by the agent in the line; undefined without a valid one. */
  readonly signature: Hex | undefined;
}

export class ReceiptChecks {
  readonly #receipts: GivenReceipts;
  readonly #met = new Map<string, Met>();
  /** The keys of the creation, wherever it stands: what precedes it must not switch receipts off. */
  #pinned: { readonly receipts: string | undefined } | undefined;
  /** The origins for which requests of the lines were signed. */
  readonly #origins = new Set<string>();
  #head = 0;

  constructor(receipts: GivenReceipts) {
    this.#receipts = receipts;
  }

  readonly take = (
    event: ForumEvent,
    { eventId, leaf }: Pick<Position, 'eventId' | 'leaf'>,
    line: Uint8Array,
  ): void => {
    if (event.type === 'chamber.created') this.#pinned ??= { receipts: event.payload.serviceKeys?.receipts };
    if (event.request !== null && this.#origins.size < ORIGINS_MAX) this.#origins.add(originOf(event.request));
    this.#head = Math.max(this.#head, eventId);
    const key = eventKey({ stream: event.chamberId ?? event.did, eventId });
    if (!this.#receipts.events.has(key) || this.#met.has(key)) return;
    this.#met.set(key, {
      leaf: toHex(leaf),
      line: new TextDecoder().decode(line),
      signature: event.request ? signatureOf(event.request) : undefined,
    });
  };

  /** Takes lines by themselves, without an audit; returns the chamber of the first, null for an account. */
  async takeLines(lines: AsyncIterable<RawLine>, read: (line: RawLine) => LineRecord<ForumEvent>) {
    let first: ForumEvent | undefined;
    for await (const line of lines) {
      const { event } = read(line);
      first ??= event;
      if (event !== undefined) this.take(event, { eventId: event.eventId, leaf: leafHash(line.bytes) }, line.bytes);
    }
    return first?.chamberId;
  }

  /** Once all lines of the stream were taken. */
  judge(stream: number | string | null | undefined, terms: ReceiptTerms = {}): readonly JudgedReceipt[] {
    const own = this.#receipts.all.filter(({ parsed }) => parsed.stream === stream);
    return own.map((given) => {
      const met = this.#met.get(eventKey(given.parsed));
      const contradiction = problemOf(given, met);
      const ofCopy = this.#problemOfCopy(given.parsed.eventId, terms);
      const ofKey = this.#problemOfKey(given, terms, ofCopy === undefined ? contradiction : undefined);
      const problem = ofKey ?? ofCopy ?? contradiction;
      return { ...given, isOfService: ofKey === undefined, ...verdictOfProblem(problem), problem, line: met?.line };
    });
  }

  /** A file may have been written before the receipt. */
  #problemOfCopy(eventId: number, { directory }: ReceiptTerms): Problem {
    if (directory !== undefined || eventId <= this.#head) return undefined;
    return { needs: 'later lines', why: `the lines end before event ${eventId} of a receipt` };
  }

  /** Why the receipt can't accuse the service. */
  #problemOfKey({ kept, parsed }: GivenReceipt, terms: ReceiptTerms, contradiction: string | undefined): Problem {
    const { directory, logId = parsed.logId } = terms;
    const { eventId, keyid } = parsed;
    const named = `the receipt of event ${eventId}`;
    if (parsed.logId !== logId)
      return { limit: 'another service', why: `${named} is of log ${parsed.logId}, and the lines of ${logId}` };
    const pinned = this.#pinned?.receipts;
    if (directory === undefined) {
      if (keyid === pinned) return undefined;
      const why = `${named} is not of the key that the chamber pins: audit the service to compare its keys`;
      // Whoever wrote the lines wrote that key, too.
      const isOfAddress = contradiction !== undefined && this.#origins.has(originOf(kept.request));
      return isOfAddress ? { doubt: `${why}; ${contradiction}` } : { needs: 'service', why };
    }
    const problem = keyProblem(parsed, pinned, directory);
    return problem === undefined ? undefined : { limit: 'another service', why: `${named} accuses nobody: ${problem}` };
  }
}

/** The check `receipts` of a chamber; two receipts of one event are broken even where the lines are sound. */
export async function reportReceipts(
  findings: Findings,
  judged: readonly JudgedReceipt[],
  proofs: ProofFolder,
): Promise<void> {
  if (judged.length === 0)
    findings.notEvaluated({ needs: 'receipts', why: 'none of the receipts is of this chamber' }, 'receipts');
  for (const { problem, parsed } of judged) findings.settle('receipts', [parsed.eventId], problem, '');
  for (const { eventId, proof } of contradictionsIn(judged)) {
    const kept = await proofs.keep(proof);
    if (kept !== undefined) findings.judge('receipts', [eventId], provedBy(kept));
  }
}

interface Contradiction {
  readonly eventId: number;
  readonly proof: Misbehaviour;
}

/** Receipts of one event with different leaves, one pair for each event. */
export function contradictionsIn(judged: readonly JudgedReceipt[]): readonly Contradiction[] {
  const first = new Map<string, JudgedReceipt>();
  const found = new Map<string, Contradiction>();
  for (const receipt of judged.filter(({ isOfService }) => isOfService)) {
    const { eventId, leaf } = receipt.parsed;
    const key = eventKey(receipt.parsed);
    const other = first.get(key) ?? receipt;
    first.set(key, other);
    if (toHex(other.parsed.leaf) === toHex(leaf)) continue;
    const receipts: [KeptReceipt, KeptReceipt] = [other.kept, receipt.kept];
    found.set(key, { eventId, proof: { format: MISBEHAVIOUR, kind: 'two-receipts', receipts } });
  }
  return [...found.values()];
}

/** A log that names another one in every line must not fill the memory. */
const ORIGINS_MAX = 100;

function originOf({ targetUri }: Pick<ReceiptRequest, 'targetUri'>): string {
  return URL.canParse(targetUri) ? new URL(targetUri).origin : targetUri;
}

function problemOf({ kept, parsed }: GivenReceipt, met: Met | undefined): string | undefined {
  const { eventId, leaf } = parsed;
  const promised = `the service has signed a receipt of event ${eventId} with the leaf ${toHex(leaf)}`;
  if (met === undefined) return `${promised}, and there is no such event`;
  if (met.leaf !== toHex(leaf)) return `${promised}, and its line has the leaf ${met.leaf}`;
  const isOfRequest = met.signature === undefined || met.signature === signatureOf(kept.request);
  return isOfRequest ? undefined : `${promised}, and its line holds another request`;
}

/** The signature of sig1: a proxy may have added others. */
function signatureOf(request: ReceiptRequest): Hex | undefined {
  try {
    return toHex(parseSignature(request).signature);
  } catch (error) {
    if (error instanceof SignatureError) return undefined;
    throw error;
  }
}
