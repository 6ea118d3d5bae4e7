// Reads the log published by a service (C2SP tlog-tiles). Nothing is trusted.
import { setTimeout as sleep } from 'node:timers/promises';
import { concatBytes } from '@noble/hashes/utils.js';
import { logIdOf } from '../../tlog/misbehaviour.ts';
import { type NoteKey, parseVerifierKey } from '../../tlog/note.ts';
import { parseTlogProof } from '../../tlog/proof.ts';
import { ENTRIES, parseEntries, type Tile, tilePath, tilesBetween } from '../../tlog/tile.ts';
import { HASH_BYTES } from '../../tlog/tree.ts';
import { UnusableInput } from '../line/input.ts';
import type { AuditedService } from './service-reader.ts';

/** Limits per proof and per audit, so that a service that proves nothing can't prolong an audit. */
export const WAIT_MS_MAX = 5_000;
const WAITS_MS_MAX = 60_000;
export const POLL_MS = 500;
/** Bounds the memory: an entry takes 32 bytes, and twice that while it is copied. */
export const ENTRIES_MAX = 500_000;

export interface LogKey {
  readonly prefix: string;
  readonly key: NoteKey;
  readonly verifierKey: string;
  readonly logId: string;
}

export class ServiceLog {
  readonly #service: AuditedService;
  #key: Promise<LogKey | undefined> | undefined;
  #waitMsLeft = WAITS_MS_MAX;

  constructor(service: AuditedService) {
    this.#service = service;
  }

  /** Returns the log named by `GET /`; undefined if the service publishes none. */
  find(): Promise<LogKey | undefined> {
    this.#key ??= this.#read();
    return this.#key;
  }

  async #read(): Promise<LogKey | undefined> {
    const found = await this.#service.read('/').catch(orUndefined);
    const { log } = Object(found?.body) as { readonly log?: unknown };
    const { prefix, checkpointKey } = Object(log) as { readonly prefix?: unknown; readonly checkpointKey?: unknown };
    if (typeof prefix !== 'string' || typeof checkpointKey !== 'string') return undefined;
    const key = parseVerifierKey(checkpointKey);
    if (key === undefined) return undefined;
    const logId = logIdOf(key.name);
    return prefix === `/log/${logId}` ? { prefix, key, verifierKey: checkpointKey, logId } : undefined;
  }

  logProblem({ logId }: LogKey): string | undefined {
    const { logId: linesLogId } = this.#service;
    if (linesLogId === null || linesLogId === logId) return undefined;
    return `the lines belong to log ${linesLogId}, but the service publishes log ${logId}`;
  }

  /**
   * Reads the inclusion proof of an event of a chamber or an account; undefined if no checkpoint covers it. Waits up to WAIT_MS_MAX for a
   * proof that `suffices`, then returns any proof.
   */
  async tlogProof(
    stream: number | string,
    eventId: number,
    suffices: (proof: string) => boolean = () => true,
  ): Promise<string | undefined> {
    const owner = typeof stream === 'number' ? `/chambers/${stream}` : `/agents/${stream}`;
    const path = `${owner}/events/${eventId}/tlog-proof`;
    const startedAt = performance.now();
    for (; ; await sleep(POLL_MS)) {
      const text = await this.#service.readText(path).catch(orUndefined);
      const proof = text !== undefined && parseTlogProof(text) !== undefined ? text : undefined;
      if (proof !== undefined && suffices(proof)) return proof;
      const waitedMs = performance.now() - startedAt;
      if (waitedMs <= Math.min(WAIT_MS_MAX, this.#waitMsLeft)) continue;
      this.#waitMsLeft = Math.max(0, this.#waitMsLeft - waitedMs);
      return proof;
    }
  }

  checkpoint({ prefix }: LogKey): Promise<string> {
    return this.#service.readText(`${prefix}/checkpoint`);
  }

  tile({ prefix }: LogKey, tile: Tile): Promise<Uint8Array> {
    return this.#service.readBytes(`${prefix}/${tilePath(tile)}`);
  }

  /** Reads and joins the entries of a tree of `size` leaves. Throws UnusableInput. */
  async entries(log: LogKey, size: number): Promise<Uint8Array> {
    if (size > ENTRIES_MAX) throw new UnusableInput(`a log of more than ${ENTRIES_MAX} entries is too large to read`);
    const bundles: Uint8Array[] = [];
    for (const tile of tilesBetween(ENTRIES, 0, size)) bundles.push(await this.entriesIn(log, tile));
    return concatBytes(...bundles);
  }

  /** Reads and joins the entries of one bundle. Throws UnusableInput. */
  async entriesIn(log: LogKey, tile: Tile): Promise<Uint8Array> {
    const entries = parseEntries(await this.tile(log, tile));
    if (entries?.length !== tile.width * HASH_BYTES)
      throw new UnusableInput(`${tilePath(tile)} is not a bundle of ${tile.width} entries`);
    return entries;
  }

  /** Reads the events of `count` leaves from index `after`, as NDJSON. */
  index({ prefix }: LogKey, after: number, count: number): Promise<string> {
    return this.#service.readText(`${prefix}/index?after=${after}&limit=${count}`);
  }
}

export function orUndefined(error: unknown): undefined {
  if (error instanceof UnusableInput) return undefined;
  throw error;
}
