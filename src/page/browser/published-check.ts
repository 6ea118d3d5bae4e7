// Compares a chamber's lines with the log that its service publishes. Checks that the log's key signed the checkpoint, that the checkpoint
// covers the chamber's last event, which pins all earlier ones, that the log extends the checkpoint that this browser saved, and that the
// witnesses named by the reader cosigned the checkpoint.
import type { ChamberAudit } from '../../audit/core.ts';
import { type NoteKey, parseVerifierKey, signatureBy } from '../../tlog/note.ts';
import {
  isPinned,
  openCheckpoint,
  parseTlogProof,
  type SignedCheckpoint,
  UNPINNED,
  verifyTlogProof,
} from '../../tlog/proof.ts';
import { tileAt, tilePath } from '../../tlog/tile.ts';
import { type ReadTiles, rootOfTiles } from '../../tlog/tiled-tree.ts';
import { fromHex } from '../../vocabulary/values.ts';
import { PUBLISHED_CHECKS, type PublishedCheckName, type ShownCheck } from '../live-view.ts';
import { request, requestJson } from './request.ts';

export interface PublishedLog {
  /** The base URL of the service with a trailing slash. */
  readonly base: string;
  /** The checkpoint that this browser saved. */
  readonly saved: string | undefined;
  /** Verifier keys (C2SP signed-note) of the witnesses that the reader names. */
  readonly witnesses: readonly string[];
}

/** A service guarantees a checkpoint within this time. */
const COVERED_MS_MAX = 60_000;

const ALL = Object.keys(PUBLISHED_CHECKS) as readonly PublishedCheckName[];

type Audited = Pick<ChamberAudit, 'head' | 'pinnedKeys'>;

interface LogIdentity {
  readonly prefix: string;
  readonly key: NoteKey;
}

interface CheckOutcome {
  readonly isVerified?: boolean;
  readonly sentence: string;
}

export class PublishedCheck {
  readonly #log: PublishedLog;
  readonly #outcomes = new Map<PublishedCheckName, CheckOutcome>();
  #identity: LogIdentity | undefined;
  #saved: SignedCheckpoint | undefined;
  #isSavedRead = false;
  /** The last event that no checkpoint covered, and when this was first observed. */
  #uncovered: { readonly eventId: number; readonly at: number } | undefined;
  /** The last event that a checkpoint covers. */
  #covered = 0;
  /** The newest checkpoint without a problem, to be saved for the next visit. */
  note: string | undefined;

  constructor(log: PublishedLog) {
    this.#log = log;
    this.#notEvaluated('not checked yet', ...ALL);
  }

  isDue({ head }: Audited): boolean {
    return head.eventId > this.#covered;
  }

  results(): readonly ShownCheck[] {
    return [...this.#outcomes].map(([name, outcome]) => shownCheck(name, PUBLISHED_CHECKS[name], outcome));
  }

  /** May be called again while a check is undecided. */
  async compare(chamberId: number, audited: Audited): Promise<void> {
    try {
      await this.#compare(chamberId, audited);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#notEvaluated(`it could not be read and is read again: ${why}`, ...ALL);
    }
  }

  async #compare(chamberId: number, { head, pinnedKeys }: Audited): Promise<void> {
    const { eventId, leaf } = head;
    this.#identity ??= await this.#readIdentity();
    if (this.#identity === undefined) {
      this.#covered = Number.POSITIVE_INFINITY;
      this.#notEvaluated('the service publishes no log', ...ALL);
      return;
    }
    const { key } = this.#identity;
    const text = await this.#text(`chambers/${chamberId}/events/${eventId}/tlog-proof`);
    if (text === undefined) {
      this.#judgeMissing(eventId);
      return;
    }
    const note = parseTlogProof(text)?.note;
    const checkpoint = note === undefined ? undefined : openCheckpoint(note, key);
    const unsigned = `the service's checkpoint is not signed by ${key.name}`;
    if (checkpoint !== undefined && !isPinned(key, pinnedKeys)) this.#notEvaluated(UNPINNED, 'signed');
    else this.#judge('signed', checkpoint === undefined && unsigned, `${checkpoint?.size} lines, ${key.name}`);
    if (checkpoint === undefined || note === undefined) {
      this.#covered = eventId;
      this.#notEvaluated('there is no valid checkpoint', 'included', 'extends', 'cosigned');
      return;
    }
    const isIncluded = verifyTlogProof(text, fromHex(leaf), key) !== undefined;
    const unproven = `the service does not prove that event ${eventId} is in its published log`;
    this.#judge('included', !isIncluded && unproven, `up to event ${eventId}`);
    this.#judgeWitnesses(checkpoint);
    await this.#judgeHistory(checkpoint);
    // Set last, so that a failed read is repeated.
    this.#covered = eventId;
    if (isIncluded && this.#outcomes.get('extends')?.isVerified !== false) this.note = note;
  }

  #judgeMissing(eventId: number): void {
    if (this.#uncovered?.eventId !== eventId) this.#uncovered = { eventId, at: performance.now() };
    const isLate = performance.now() - this.#uncovered.at > COVERED_MS_MAX;
    const problem = `no checkpoint covers event ${eventId} a minute after it arrived`;
    if (isLate) this.#judge('included', problem);
    else this.#notEvaluated(`no checkpoint covers event ${eventId} yet`, 'included');
  }

  #judgeWitnesses({ note }: SignedCheckpoint): void {
    const keys = this.#log.witnesses.map(parseVerifierKey);
    const cosigners = note.signatures.slice(1).map(({ name }) => name);
    if (keys.length === 0) {
      const claimed =
        cosigners.length === 0 ? 'it has no cosignatures' : `it has cosignatures of ${cosigners.join(', ')}`;
      this.#notEvaluated(`${claimed}; name the witnesses that you trust below`, 'cosigned');
      return;
    }
    const missing = keys.filter((key) => key === undefined || signatureBy(key, note) === undefined);
    const names = missing.map((key) => key?.name ?? 'an invalid verifier key');
    // A witness can be slow or down, so a missing cosignature is not a fault of the service.
    if (missing.length > 0) this.#notEvaluated(`no cosignature of ${names.join(', ')}`, 'cosigned');
    else this.#judge('cosigned', false, keys.map((key) => key?.name).join(', '));
  }

  async #judgeHistory(served: SignedCheckpoint): Promise<void> {
    const { saved } = this.#log;
    if (!this.#isSavedRead && saved !== undefined) {
      this.#saved = this.#identity && openCheckpoint(saved, this.#identity.key);
      if (this.#saved === undefined)
        this.#notEvaluated('the checkpoint of the last visit is of another log or key', 'extends');
    } else if (this.#saved === undefined) this.#notEvaluated('this browser has no earlier checkpoint', 'extends');
    this.#isSavedRead = true;
    const before = this.#saved;
    if (before === undefined) {
      this.#saved = served;
      return;
    }
    const problem = await this.#contradiction(before, served);
    this.#judge('extends', problem ?? false, `from ${before.size} to ${served.size} lines`);
    if (problem === undefined) this.#saved = served;
  }

  async #contradiction(before: SignedCheckpoint, served: SignedCheckpoint): Promise<string | undefined> {
    if (served.size < before.size) {
      return `the service shows a checkpoint of ${served.size} lines, but has signed one of ${before.size}`;
    }
    const readTiles: ReadTiles = (refs) =>
      Promise.all(
        refs.map(async (ref) => {
          const tile = tileAt(ref, served.size);
          const response = tile && (await request(this.#url(`${this.#identity?.prefix}/${tilePath(tile)}`)));
          return response?.ok ? new Uint8Array(await response.arrayBuffer()) : undefined;
        }),
      );
    if (!isSame(await rootOfTiles(served.size, readTiles), served.root)) {
      return 'the tiles of the service do not have the root of its checkpoint';
    }
    if (isSame(await rootOfTiles(before.size, readTiles), before.root)) return undefined;
    return `history was changed: the log of ${served.size} lines does not begin with the ${before.size} lines of an earlier signed checkpoint`;
  }

  async #readIdentity(): Promise<LogIdentity | undefined> {
    const info = await requestJson(this.#log.base, { headers: { Accept: 'application/json' } });
    const { log } = (info ?? {}) as { readonly log?: { prefix?: unknown; checkpointKey?: unknown } };
    const key = parseVerifierKey(String(log?.checkpointKey));
    return typeof log?.prefix === 'string' && key !== undefined ? { prefix: log.prefix, key } : undefined;
  }

  /** Returns undefined for 404. */
  async #text(path: string): Promise<string | undefined> {
    const response = await request(this.#url(path), { cache: 'no-store' });
    return response.ok ? await response.text() : undefined;
  }

  #url(path: string): string {
    return this.#log.base + path.replace(/^\//, '');
  }

  /** A broken check stays broken. */
  #judge(name: PublishedCheckName, problem: string | false, note = ''): void {
    if (this.#outcomes.get(name)?.isVerified === false) return;
    this.#outcomes.set(name, { isVerified: problem === false, sentence: problem === false ? note : problem });
  }

  #notEvaluated(sentence: string, ...names: readonly PublishedCheckName[]): void {
    for (const name of names) {
      const isJudged = this.#outcomes.get(name)?.isVerified !== undefined;
      if (!isJudged) this.#outcomes.set(name, { sentence });
    }
  }
}

export function shownCheck(
  name: ShownCheck['name'],
  title: string,
  { isVerified, sentence }: CheckOutcome,
): ShownCheck {
  const isBroken = isVerified === false;
  return {
    name,
    title,
    verdict: isVerified === undefined ? 'not evaluated' : isVerified ? 'verified' : 'broken',
    counts: {
      verified: Number(isVerified === true),
      broken: Number(isBroken),
      undecided: 0,
      notEvaluated: Number(isVerified === undefined),
    },
    findings: isBroken ? [{ eventIds: [], sentence }] : [],
    note: isBroken || sentence === '' ? null : sentence,
  };
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}
