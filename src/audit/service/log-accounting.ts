// Whether every entry of the log under one checkpoint is accounted for by exactly one line: of a chamber that is listed, or of an account. A second
// history of a chamber has no entry left to be in. The checkpoint is read before all else, so that each of its events is served afterwards.

import { READ_LIMITS } from '../../reading/limits.ts';
import { entryEvidence } from '../../tlog/entry-evidence.ts';
import { nameOfStream, placeOfLine, type Stream } from '../../tlog/leaf-index.ts';
import { COVERED_SECONDS_MAX } from '../../tlog/misbehaviour.ts';
import { openCheckpoint, verifyTlogProof } from '../../tlog/proof.ts';
import { fromHex, type Hex, toHex } from '../../vocabulary/values.ts';
import type { AccountHead, WatchedAccounts } from '../account/watched-accounts.ts';
import type { OnEvent } from '../chamber/chamber-audit.ts';
import { leafOf } from '../chamber/sequence.ts';
import { UnusableInput } from '../line/input.ts';
import type { ProofFolder } from '../receipts/proof-folder.ts';
import type { Reason } from '../report/findings.ts';
import { LogEntries, NoHonestIndex, TooLarge } from './log-entries.ts';
import { LoggedStream, type Mismatch } from './logged-stream.ts';
import { type LogKey, orUndefined, type ServiceLog } from './service-log.ts';
import type { AuditedService } from './service-reader.ts';

const PROBLEMS_MAX = 100;
const COVERED_MS_MAX = COVERED_SECONDS_MAX * 1_000;
const utf8 = new TextDecoder();

interface Audited {
  readonly service: AuditedService;
  readonly published: ServiceLog;
  readonly proofs: ProofFolder;
}

const USE_MIRROR = 'chambers mirror shows whether its lines account for each entry';

/** Nothing of them where the service has published no log, or nothing yet. */
export interface OpenedLog {
  readonly accounting?: LogAccounting;
  /** Why it is none of an honest service. */
  readonly problem?: string;
  readonly unread?: Reason;
}

export class LogAccounting {
  readonly #audited: Audited;
  readonly #log: LogKey;
  readonly #entries: LogEntries;
  readonly #problems: string[] = [];
  readonly #chambers = new Set<Stream>();
  #current: LoggedStream | undefined;
  /** The index of the first line of a release that publishes every line. */
  #laterFrom = Number.POSITIVE_INFINITY;

  private constructor(audited: Audited, log: LogKey, entries: LogEntries) {
    this.#audited = audited;
    this.#log = log;
    this.#entries = entries;
  }

  static async open(audited: Audited): Promise<OpenedLog> {
    const { published } = audited;
    const log = await published.find();
    const note = log && (await published.checkpoint(log).catch(orUndefined));
    if (log === undefined || note === undefined) return {};
    const checkpoint = openCheckpoint(note, log.key);
    if (checkpoint === undefined) return { problem: 'the service’s checkpoint is not signed by its key' };
    let accounting: LogAccounting | undefined;
    try {
      accounting = new LogAccounting(audited, log, new LogEntries(checkpoint));
      await accounting.#entries.read(published, log);
      return { accounting };
    } catch (error) {
      if (error instanceof NoHonestIndex && accounting !== undefined) {
        return { problem: await accounting.#problemOfIndex(error) };
      }
      if (error instanceof TooLarge) return { unread: { limit: 'large log', why: `${error.message}: ${USE_MIRROR}` } };
      if (error instanceof UnusableInput) return { problem: `the published log can’t be read: ${error.message}` };
      throw error;
    }
  }

  /** The checkpoint that the entries are under. */
  get checkpoint() {
    return this.#entries.checkpoint;
  }

  /** Begins a pass over the lines of a chamber. */
  begin(chamberId: number): void {
    this.#chambers.add(chamberId);
    this.#current = new LoggedStream(this.#entries, chamberId);
  }

  readonly take: OnEvent = ({ payload }, { eventId, leaf }, line) => {
    this.#current?.take(eventId, leaf, line);
    const index = this.#current?.indexOf(eventId);
    const isOfLaterRelease = 'serviceKeys' in payload || 'accountEventId' in payload;
    if (index !== undefined && isOfLaterRelease) this.#laterFrom = Math.min(this.#laterFrom, index);
  };

  /** What is wrong between the log and the lines of the chamber that were taken. */
  async problemOfChamber(): Promise<string | undefined> {
    const mismatch = this.#current?.mismatch();
    return mismatch && (await this.#keep(mismatch));
  }

  /** What is wrong with the rest of the log, and with the accounts that chambers were judged by. */
  async conclude(accounts: WatchedAccounts): Promise<readonly string[]> {
    const dids = new Set(accounts.dids);
    for (const stream of this.#entries.streams) {
      if (typeof stream === 'string') dids.add(stream);
      else if (!this.#chambers.has(stream)) await this.#note(this.#unlisted(stream));
    }
    for (const did of dids) {
      if (this.#problems.length >= PROBLEMS_MAX) break;
      await this.#checkAccount(did, accounts.headsOf(did));
    }
    return this.#problems;
  }

  #unlisted(stream: Stream): Mismatch | undefined {
    const mismatch = new LoggedStream(this.#entries, stream).mismatch();
    return mismatch && { ...mismatch, problem: `the log has ${nameOfStream(stream)}, which the service does not list` };
  }

  async #checkAccount(did: string, heads: ReadonlyMap<number, AccountHead>): Promise<void> {
    const logged = new LoggedStream(this.#entries, did);
    const served = new Map<number, Hex>();
    let first: { readonly eventId: number; readonly prev: unknown } | undefined;
    let last = 0;
    let isServed = true;
    try {
      for await (const { bytes } of this.#audited.service.accountLines(did)) {
        const place = placeOfLine(utf8.decode(bytes), READ_LIMITS.jsonValuesMax);
        if (place?.stream !== did || (last > 0 && place.eventId !== last + 1)) break;
        first ??= place;
        last = place.eventId;
        const leaf = leafOf(bytes);
        logged.take(last, leaf, bytes);
        if (heads.has(last)) served.set(last, toHex(leaf));
      }
    } catch (error) {
      if (!(error instanceof UnusableInput)) throw error;
      isServed = false;
    }
    await this.#note(logged.mismatch(isServed ? this.#publishedFrom(logged, first) : 1));
    for (const head of heads.values())
      await this.#checkHead(did, { head, isServed: served.get(head.eventId) === head.leaf, logged });
  }

  /** Only releases before schema 4 did not publish lines: the first ones of accounts, of which the first published one holds the hash. */
  #publishedFrom(
    logged: LoggedStream,
    first: { readonly eventId: number; readonly prev: unknown } | undefined,
  ): number {
    const unpublished = Math.min(first === undefined ? logged.size : first.eventId - 1, logged.size);
    const index = logged.indexOf(unpublished);
    if (index === undefined || index >= this.#laterFrom) return 1;
    const isHeld = first === undefined || first.prev === toHex(this.#entries.entryAt(index));
    return isHeld ? unpublished + 1 : 1;
  }

  /** The account was read for chambers: the lines are to be the same here, and those after the checkpoint in the log as well. */
  async #checkHead(
    did: string,
    {
      head,
      isServed,
      logged,
    }: { readonly head: AccountHead; readonly isServed: boolean; readonly logged: LoggedStream },
  ): Promise<void> {
    if (!isServed) return this.#add(`the service serves other lines of the account of ${did} than it did before`);
    if (logged.indexOf(head.eventId) !== undefined) return;
    const problem = await problemOfHead(did, head, this.#audited.published, this.#log);
    if (problem !== undefined) this.#add(problem);
  }

  async #problemOfIndex({ message, leaf }: NoHonestIndex): Promise<string> {
    return leaf === undefined ? message : await this.#keep({ problem: message, leaf, line: null });
  }

  async #note(mismatch: Mismatch | undefined): Promise<void> {
    if (mismatch !== undefined && this.#problems.length < PROBLEMS_MAX) this.#add(await this.#keep(mismatch));
  }

  #add(problem: string): void {
    this.#problems.push(problem);
  }

  /** Returns the problem, with the file of the evidence. */
  async #keep({ problem, leaf, line }: Mismatch): Promise<string> {
    const { published, proofs } = this.#audited;
    const entry = this.#entries.entryAt(leaf.index);
    const { verifierKey } = this.#log;
    const readTile = (tile: Parameters<ServiceLog['tile']>[1]) => published.tile(this.#log, tile);
    const content = await entryEvidence(
      { problem, leaf, entry, line },
      { checkpoint: this.checkpoint, keys: [verifierKey], readTile },
    );
    return `${problem}: ${await proofs.keepEvidence(`entry-${leaf.index}`, content)} keeps what the service signed and said of it`;
  }
}

/** What is wrong between the log and the last line of an account; a line of the last minute may not be covered yet. */
export async function problemOfHead(
  did: string,
  { eventId, leaf, at }: AccountHead,
  published: ServiceLog,
  { key }: LogKey,
): Promise<string | undefined> {
  const proof = await published.tlogProof(did, eventId);
  const what = `event ${eventId} of the account of ${did}`;
  if (proof !== undefined && verifyTlogProof(proof, fromHex(leaf), key) !== undefined) return undefined;
  if (proof !== undefined) return `the service does not prove that ${what} is in its log`;
  const isLate = Date.now() - at > COVERED_MS_MAX;
  return isLate ? `${what} is under no checkpoint, although it is more than a minute old` : undefined;
}
