// Compares the receipts of one stream with its lines.
import { parseSignature, SignatureError } from '../../crypto/http-signature.ts';
import { type KeyDirectory, keyProblem } from '../../crypto/key-directory.ts';
import type { KeptReceipt, ParsedReceipt, ReceiptRequest } from '../../crypto/receipt.ts';
import { MISBEHAVIOUR, type Misbehaviour } from '../../tlog/misbehaviour.ts';
import type { ForumEvent } from '../../vocabulary/events.ts';
import { type Hex, instantOf, type Millis, toHex } from '../../vocabulary/values.ts';
import type { Position } from '../chamber/sequence.ts';
import type { RawLine } from '../line/input.ts';
import { leafOf } from '../line/leaf.ts';
import type { LineRecord } from '../line/record.ts';
import { type Findings, type Problem, type Verdict, verdictOfProblem } from '../report/findings.ts';
import { eventKey, type GivenReceipt, type GivenReceipts } from './given-receipts.ts';
import { type ProofFolder, provedBy } from './proof-folder.ts';

/** What is known about the service's keys and log. */
export interface ReceiptTerms {
  /** undefined for a file, where only the chamber's pinned key is known. */
  readonly directory?: KeyDirectory | undefined;
  readonly logId?: string;
}

export interface JudgedReceipt extends GivenReceipt {
  /** Whether the service signed it for the log of the lines. */
  readonly isFromService: boolean;
  readonly problem: Problem;
  readonly verdict: Verdict;
  readonly reason: string | null;
  /** The line with the receipt's event id; undefined if there is none. */
  readonly line: string | undefined;
}

interface MatchedLine {
  readonly leaf: Hex;
  readonly line: string;
  /** The agent's signature in the line; undefined if it has no well-formed one. */
  readonly signature: Hex | undefined;
}

/** The extent of a stream's lines. */
interface StreamEnd {
  /** The first event id: earlier lines of an account may be missing. */
  readonly first: number;
  readonly head: number;
  /** The time of the last line. */
  readonly at: Millis;
  /** Whether no move can follow: the stream has a service event, which follows all moves, or a retirement. */
  readonly isFinal: boolean;
}

/** A receipt is signed after its event, by a clock that may be off by this much. */
const CLOCK_SKEW_SECONDS = 60;

type EventPosition = Pick<ParsedReceipt, 'stream' | 'eventId'>;

export class ReceiptChecks {
  readonly #receipts: GivenReceipts;
  readonly #matched = new Map<string, MatchedLine>();
  /** The keys in the creation, even if other lines precede it: such lines must not disable receipts. */
  #pinned: { readonly receipts: string | undefined } | undefined;
  /** The origins that the lines' requests were signed for. */
  readonly #origins = new Set<string>();
  /** Contains only streams that have receipts. */
  readonly #ends = new Map<number | string, StreamEnd>();

  /** By the signature of the receipted request. */
  readonly #bySignature: ReadonlyMap<Hex, GivenReceipt>;
  /** Receipts whose request occurs in another stream's line. */
  readonly #elsewhere = new Map<KeptReceipt, EventPosition>();

  constructor(receipts: GivenReceipts) {
    this.#receipts = receipts;
    this.#bySignature = new Map(
      receipts.all.flatMap((given) => {
        const signature = signatureOf(given.kept.request);
        return signature === undefined ? [] : [[signature, given] as const];
      }),
    );
  }

  /** The accounts that have receipts. */
  get accounts(): readonly string[] {
    return [...this.#receipts.streams].filter((stream) => typeof stream === 'string');
  }

  readonly take = (
    event: ForumEvent,
    { eventId, leaf }: Pick<Position, 'eventId' | 'leaf'>,
    line: Uint8Array,
  ): void => {
    if (event.type === 'chamber.created') this.#pinned ??= { receipts: event.payload.serviceKeys?.receipts };
    if (event.request !== null && this.#origins.size < ORIGINS_MAX) this.#origins.add(originOf(event.request));
    const stream = event.chamberId ?? event.did;
    this.#noteEnd(stream, event, eventId);
    this.#noteRequest(event, { stream, eventId });
    const key = eventKey({ stream, eventId });
    if (!this.#receipts.events.has(key) || this.#matched.has(key)) return;
    this.#matched.set(key, {
      leaf: toHex(leaf),
      line: new TextDecoder().decode(line),
      signature: event.request ? signatureOf(event.request) : undefined,
    });
  };

  /** A request must become only one event. Within the receipt's own stream, the line with the same event id is compared instead. */
  #noteRequest({ request }: ForumEvent, position: EventPosition): void {
    if (request === null) return;
    const signature = signatureOf(request);
    const receipt = signature && this.#bySignature.get(signature);
    if (receipt !== undefined && receipt.parsed.stream !== position.stream) this.#elsewhere.set(receipt.kept, position);
  }

  #noteEnd(stream: number | string, { type, did, ts }: ForumEvent, eventId: number): void {
    if (!this.#receipts.streams.has(stream)) return;
    const { first = eventId, head = 0, at = 0, isFinal = false } = this.#ends.get(stream) ?? {};
    this.#ends.set(stream, {
      first,
      head: Math.max(head, eventId),
      at: Math.max(at, instantOf(ts)),
      isFinal: isFinal || did === null || type === 'agent.retired',
    });
  }

  /** Takes lines that are not audited; resolves to the stream of the first. */
  async takeLines(lines: AsyncIterable<RawLine>, read: (line: RawLine) => LineRecord<ForumEvent>) {
    let first: ForumEvent | undefined;
    for await (const line of lines) {
      const { event } = read(line);
      first ??= event;
      if (event !== undefined)
        this.take(event, { eventId: event.eventId, leaf: leafOf(line.bytes, event) }, line.bytes);
    }
    return first && (first.chamberId ?? first.did);
  }

  /** Call after taking all lines of the stream. */
  judge(stream: number | string | undefined, terms: ReceiptTerms = {}): readonly JudgedReceipt[] {
    const isRelevant = ({ kept, parsed }: GivenReceipt) =>
      parsed.stream === stream || this.#elsewhere.get(kept)?.stream === stream;
    return this.#receipts.all.filter(isRelevant).map((given) => {
      const matched = this.#matched.get(eventKey(given.parsed));
      const elsewhere = this.#elsewhere.get(given.kept);
      const contradiction = lineProblem(given, matched, elsewhere);
      const fileProblem = elsewhere === undefined ? this.#outdatedFileProblem(given.parsed, terms) : undefined;
      const signerProblem = this.#receiptKeyProblem(
        given,
        terms,
        fileProblem === undefined ? contradiction : undefined,
      );
      // A restored copy is a different log, where resending a creation creates a different chamber.
      const isOpen = elsewhere !== undefined && terms.logId === undefined;
      const found = isOpen ? { doubt: `${contradiction}: audit the service, which names its log` } : contradiction;
      const problem = signerProblem ?? fileProblem ?? found;
      return {
        ...given,
        isFromService: signerProblem === undefined,
        ...verdictOfProblem(problem),
        problem,
        line: matched?.line,
      };
    });
  }

  /** A file may be older than the receipt, unless the stream has ended or its last line is newer. */
  #outdatedFileProblem({ stream, eventId, created }: ParsedReceipt, { directory }: ReceiptTerms): Problem {
    if (directory !== undefined) return undefined;
    const end = this.#ends.get(stream);
    if (typeof stream === 'string' && (end === undefined || eventId < end.first))
      return { needs: 'accounts', why: `event ${eventId} of a receipt is not among the lines: use --accounts` };
    const { head = 0, at = 0, isFinal = false } = end ?? {};
    if (eventId <= head || isFinal || at > (created + CLOCK_SKEW_SECONDS) * 1_000) return undefined;
    return { needs: 'later lines', why: `the lines end before event ${eventId} of a receipt` };
  }

  /** Returns why the receipt is no evidence against the service; undefined if it is. */
  #receiptKeyProblem({ kept, parsed }: GivenReceipt, terms: ReceiptTerms, contradiction: string | undefined): Problem {
    const { directory, logId = parsed.logId } = terms;
    const { eventId, keyid } = parsed;
    const named = `the receipt for event ${eventId}`;
    if (parsed.logId !== logId)
      return {
        limit: 'another service',
        why: `${named} belongs to log ${parsed.logId}, but the lines belong to log ${logId}`,
      };
    const pinned = this.#pinned?.receipts;
    if (directory === undefined && keyid === pinned) return undefined;
    const problem = directory && keyProblem(parsed, pinned, directory);
    if (directory !== undefined && problem === undefined) return undefined;
    const why =
      problem === undefined
        ? `${named} is not signed with the key that the chamber pins: audit the service to compare its keys`
        : `${named} is no evidence: ${problem}`;
    // Neither source of keys is trustworthy: a forger of lines chooses the pinned key, and a service chooses its directory's keys.
    const isOpen = directory?.has(keyid) !== true && this.#origins.has(originOf(kept.request));
    if (contradiction !== undefined && isOpen) return { doubt: `${why}; ${contradiction}` };
    return directory === undefined ? { needs: 'service', why } : { limit: 'another service', why };
  }
}

/** Reports the check `receipts` of a chamber. Two receipts for one event with different leaves are broken even if the lines are sound. */
export async function reportReceipts(
  findings: Findings,
  judged: readonly JudgedReceipt[],
  proofs: ProofFolder,
): Promise<void> {
  if (judged.length === 0)
    findings.notEvaluated({ needs: 'receipts', why: 'none of the receipts is for this chamber' }, 'receipts');
  await report(findings, judged, proofs);
}

/** Reports receipts of accounts. Findings name only chamber events, so these have no event ids. */
export async function reportAccountReceipts(findings: Findings, checks: ReceiptChecks, proofs: ProofFolder) {
  await report(
    findings,
    checks.accounts.flatMap((did) => checks.judge(did)),
    proofs,
  );
}

async function report(findings: Findings, judged: readonly JudgedReceipt[], proofs: ProofFolder): Promise<void> {
  const named = ({ stream, eventId }: Pick<ParsedReceipt, 'stream' | 'eventId'>) =>
    typeof stream === 'number' ? ([[eventId], ''] as const) : ([[], `of the account of ${stream}, `] as const);
  for (const { problem, parsed } of judged) findings.assess('receipts', named(parsed)[0], problem, named(parsed)[1]);
  for (const { eventId, stream, proof } of contradictionsIn(judged)) {
    const kept = await proofs.keep(proof);
    if (kept !== undefined) findings.judge('receipts', named({ stream, eventId })[0], provedBy(kept));
  }
}

interface Contradiction {
  readonly stream: ParsedReceipt['stream'];
  readonly eventId: number;
  readonly proof: Misbehaviour;
}

/** Returns one pair of receipts for each event that has receipts with different leaves. */
export function contradictionsIn(judged: readonly JudgedReceipt[]): readonly Contradiction[] {
  const first = new Map<string, JudgedReceipt>();
  const found = new Map<string, Contradiction>();
  for (const receipt of judged.filter(({ isFromService }) => isFromService)) {
    const { stream, eventId, leaf } = receipt.parsed;
    const key = eventKey(receipt.parsed);
    const other = first.get(key) ?? receipt;
    first.set(key, other);
    if (toHex(other.parsed.leaf) === toHex(leaf)) continue;
    const receipts: [KeptReceipt, KeptReceipt] = [other.kept, receipt.kept];
    found.set(key, { stream, eventId, proof: { format: MISBEHAVIOUR, kind: 'two-receipts', receipts } });
  }
  return [...found.values()];
}

/** Bounds the memory for a log that names a new origin in every line. */
const ORIGINS_MAX = 100;

function originOf({ targetUri }: Pick<ReceiptRequest, 'targetUri'>): string {
  return URL.canParse(targetUri) ? new URL(targetUri).origin : targetUri;
}

function lineProblem(
  { kept, parsed }: GivenReceipt,
  matched: MatchedLine | undefined,
  elsewhere?: EventPosition,
): string | undefined {
  const { eventId, leaf } = parsed;
  const promised = `the service has signed a receipt for event ${eventId} with the leaf ${toHex(leaf)}`;
  if (elsewhere !== undefined)
    return `${promised} of ${streamName(parsed)}, but its request is in event ${elsewhere.eventId} of ${streamName(elsewhere)}`;
  if (matched === undefined) return `${promised}, but there is no such event`;
  if (matched.leaf !== toHex(leaf)) return `${promised}, but its line has the leaf ${matched.leaf}`;
  const hasSameRequest = matched.signature === undefined || matched.signature === signatureOf(kept.request);
  return hasSameRequest ? undefined : `${promised}, but its line contains a different request`;
}

function streamName({ stream }: EventPosition): string {
  return typeof stream === 'number' ? `chamber ${stream}` : `the account of ${stream}`;
}

/** Reads only sig1, because a proxy may have added other signatures. */
function signatureOf(request: ReceiptRequest): Hex | undefined {
  try {
    return toHex(parseSignature(request).signature);
  } catch (error) {
    if (error instanceof SignatureError) return undefined;
    throw error;
  }
}
