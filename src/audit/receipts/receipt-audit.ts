// Complements the check `receipts` of each chamber: compares kept receipts with the service's accounts, and with chambers that the
// service no longer lists. Writes proofs for broken receipts.
import { base64 } from '@scure/base';
import { DIRECTORY_PATH, parseDirectory } from '../../crypto/key-directory.ts';
import { MISBEHAVIOUR } from '../../tlog/misbehaviour.ts';
import { formatVerifierKey } from '../../tlog/note.ts';
import { openCheckpoint } from '../../tlog/proof.ts';
import type { OnEvent } from '../chamber/chamber-audit.ts';
import { readAccountRecord } from '../line/record.ts';
import type { CheckpointOptions } from '../service/checkpoints.ts';
import { type LogKey, orUndefined, type ServiceLog } from '../service/service-log.ts';
import type { AuditedService } from '../service/service-reader.ts';
import type { GivenReceipts } from './given-receipts.ts';
import { provedBy } from './proof-folder.ts';
import { contradictionsIn, type JudgedReceipt, ReceiptChecks, type ReceiptTerms } from './receipt-checks.ts';

/** The logId used for a service that names none; no receipt matches it. */
const NO_LOG = 'no log';
const PROOFS_MAX = 100;
/** Each of these proofs reads all entries of the log. */
const PROOFS_BY_ENTRIES_MAX = 10;

export class ReceiptAudit {
  readonly #service: AuditedService;
  readonly #log: ServiceLog;
  readonly #receipts: GivenReceipts;
  #newest: { readonly ts: string; readonly line: string } | undefined;
  #terms: Promise<ReceiptTerms> | undefined;

  constructor(service: AuditedService, log: ServiceLog, receipts: GivenReceipts) {
    this.#service = service;
    this.#log = log;
    this.#receipts = receipts;
  }

  /** Call with every event of all chambers. */
  readonly take: OnEvent = ({ ts }, _, line) => {
    if (ts > (this.#newest?.ts ?? '')) this.#newest = { ts, line: new TextDecoder().decode(line) };
  };

  /** Call after lines were read, because responses with lines name their log. */
  terms(): Promise<ReceiptTerms> {
    this.#terms ??= this.#readTerms();
    return this.#terms;
  }

  async #readTerms(): Promise<ReceiptTerms> {
    const response = await this.#service.read(DIRECTORY_PATH).catch(orUndefined);
    const logId = this.#service.logId ?? (await this.#log.find())?.logId ?? NO_LOG;
    return { directory: parseDirectory(response?.body), logId };
  }

  /** Judges receipts of accounts, and of chambers not in the set. */
  async judgeOthers(chamberIds: ReadonlySet<number> | 'accounts alone'): Promise<readonly JudgedReceipt[]> {
    const judged: JudgedReceipt[] = [];
    for (const stream of this.#receipts.streams) {
      if (typeof stream === 'number' && (chamberIds === 'accounts alone' || chamberIds.has(stream))) continue;
      const checks = new ReceiptChecks(this.#receipts);
      // A service that returns no account lacks the receipts' events.
      if (typeof stream === 'string')
        await checks.takeLines(this.#service.accountLines(stream), readAccountRecord).catch(orUndefined);
      judged.push(...checks.judge(stream, await this.terms()));
    }
    return judged;
  }

  /** Writes a proof for each broken receipt if possible, and for each pair of contradictory receipts in `others`; returns sentences. */
  async prove(
    chamberReceipts: readonly JudgedReceipt[],
    others: readonly JudgedReceipt[],
    options: CheckpointOptions,
  ): Promise<readonly string[]> {
    const written = await Promise.all(contradictionsIn(others).map(({ proof }) => options.proofs.keep(proof)));
    const broken = [...chamberReceipts, ...others].filter(({ verdict }) => verdict === 'broken').slice(0, PROOFS_MAX);
    const log = broken.length === 0 ? undefined : await this.#log.find();
    let byEntries = 0;
    for (const receipt of broken) {
      if (log === undefined) break;
      const byLine = await this.#proveLine(receipt, log, options);
      const isMissing = byLine === undefined && byEntries++ < PROOFS_BY_ENTRIES_MAX;
      written.push(isMissing ? await this.#proveMissing(receipt, log, options) : byLine);
    }
    return written.flatMap((each) => (each === undefined ? [] : [provedBy(each)]));
  }

  /** Proves a broken receipt with the service's own inclusion proof of the line with the same event id. */
  async #proveLine({ kept, parsed, line }: JudgedReceipt, { verifierKey }: LogKey, { proofs }: CheckpointOptions) {
    const { stream, eventId } = parsed;
    if (line === undefined) return undefined;
    const tlogProof = await this.#log.tlogProof(stream, eventId);
    if (tlogProof === undefined) return undefined;
    const keys = [verifierKey];
    return proofs.keep({ format: MISBEHAVIOUR, kind: 'receipt-and-line', receipt: kept, line, tlogProof, keys });
  }

  /** Proves with a later checkpoint, kept or current, that the log lacks the receipt's event. */
  async #proveMissing({ kept }: JudgedReceipt, log: LogKey, { keptNotes, witnessPolicy, proofs }: CheckpointOptions) {
    for (const checkpoint of [...keptNotes, await this.#log.checkpoint(log)]) {
      const opened = openCheckpoint(checkpoint, log.key);
      const entries = opened && (await this.#log.entries(log, opened.size).catch(orUndefined));
      if (entries === undefined) continue;
      const written = await proofs.keep({
        ...{ format: MISBEHAVIOUR, kind: 'receipt-and-checkpoint', receipt: kept, checkpoint },
        ...{ entries: base64.encode(entries), keys: [log.verifierKey] },
        witnesses: (witnessPolicy?.witnesses ?? []).map(({ key }) => formatVerifierKey(key)),
        laterLine: this.#newest?.line ?? null,
      });
      if (written !== undefined) return written;
    }
    return undefined;
  }
}
