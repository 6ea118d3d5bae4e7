// Compares a chamber's lines with the log that the service publishes: its last event, which pins all before it, is under the newest
// checkpoint, and that extends the checkpoints that the caller has kept.
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseCheckpoint } from '../../tlog/checkpoint.ts';
import { formatNote, isNoteSignature, type NoteKey, parseNote, parseVerifierKey } from '../../tlog/note.ts';
import type { Policy } from '../../tlog/policy.ts';
import { openCheckpoint, parseTlogProof, type SignedCheckpoint, verifyTlogProof } from '../../tlog/proof.ts';
import { tileAt, tilePath } from '../../tlog/tile.ts';
import { type ReadTiles, rootOfTiles } from '../../tlog/tiled-tree.ts';
import { fromHex } from '../../vocabulary/values.ts';
import type { ChamberAudit } from '../chamber/chamber-audit.ts';
import { UnusableInput } from '../line/input.ts';
import type { AuditedService } from './service-reader.ts';

/** A service promises a checkpoint within this time. */
const COVERED_MS_MAX = 60_000;
const WAIT_MS_MAX = 5_000;
const POLL_MS = 500;

export interface CheckpointOptions {
  /** A file of checkpoints that were kept, one after the other. */
  readonly checkpoints?: string | undefined;
  readonly keptNotes?: readonly string[] | undefined;
  readonly witnessPolicy?: Policy | undefined;
}

interface Log {
  readonly prefix: string;
  readonly key: NoteKey;
}

/** The published log of one service. */
export class CheckpointAudit {
  readonly #service: AuditedService;
  readonly #options: CheckpointOptions;
  #log: Promise<Log | undefined> | undefined;

  constructor(service: AuditedService, options: CheckpointOptions) {
    this.#service = service;
    this.#options = options;
  }

  async compare({ findings, head }: ChamberAudit, chamberId: number): Promise<void> {
    const log = await this.#find();
    if (log === undefined) return findings.notEvaluated('the service publishes no log', 'checkpoint', 'witnesses');
    const { eventId, leaf, at } = head;
    const text = await this.#proof(`/chambers/${chamberId}/events/${eventId}/tlog-proof`);
    if (text === undefined) {
      const isLate = Date.now() - at > COVERED_MS_MAX;
      const what = `event ${eventId} is under no checkpoint`;
      if (isLate) findings.judge('checkpoint', [], `${what}, although it is more than a minute old`);
      else findings.notEvaluated(`${what} yet`, 'checkpoint');
      return findings.notEvaluated(`${what} yet`, 'witnesses');
    }
    const checkpoint = verifyTlogProof(text, fromHex(leaf), log.key);
    const problem = `the service does not prove that event ${eventId} of the lines is in its log`;
    findings.judge('checkpoint', [], checkpoint === undefined && problem);
    this.#judgeWitnesses(findings, checkpoint);
  }

  #judgeWitnesses(findings: ChamberAudit['findings'], checkpoint: SignedCheckpoint | undefined): void {
    const { witnessPolicy: policy } = this.#options;
    if (policy === undefined || checkpoint === undefined) {
      const reason =
        policy === undefined ? 'use --witnesses to name those that you trust' : 'there is no valid checkpoint';
      findings.notEvaluated(reason, 'witnesses');
      return;
    }
    const { text, signatures } = checkpoint.note;
    const cosigners = policy.witnesses.filter(({ key }) =>
      signatures.some(
        (signature) =>
          signature.name === key.name && signature.keyId === key.keyId && isNoteSignature(text, key, signature),
      ),
    );
    const isMet = policy.isQuorum(new Set(cosigners.map(({ name }) => name)));
    const problem = `the checkpoint of size ${checkpoint.size} is cosigned by ${cosigners.length} of ${policy.witnesses.length} witnesses, which is no quorum`;
    findings.judge('witnesses', [], !isMet && problem);
  }

  /** Undefined while no checkpoint covers the event, for a few seconds. */
  async #proof(path: string): Promise<string | undefined> {
    for (const giveUpAt = performance.now() + WAIT_MS_MAX; ; await sleep(POLL_MS)) {
      const text = await this.#service.readText(path).catch(orUndefined);
      if (text !== undefined && parseTlogProof(text) !== undefined) return text;
      if (performance.now() > giveUpAt) return undefined;
    }
  }

  /** What is wrong between the checkpoints that were kept and the newest one: sentences, with the file that proves each. */
  async problems(): Promise<readonly string[]> {
    const { checkpoints: path, keptNotes = [] } = this.#options;
    if (path === undefined) return [];
    const log = await this.#find();
    if (log === undefined) throw new UnusableInput('--checkpoints: the service publishes no log');
    const note = await this.#service.readText(`${log.prefix}/checkpoint`);
    const served = openCheckpoint(note, log.key);
    if (served === undefined) return ['the service’s checkpoint is not signed by its key'];
    const problems: string[] = [];
    for (const kept of keptNotes) {
      const problem = await this.#contradiction(log, kept, served);
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  async #contradiction({ prefix, key }: Log, note: string, served: SignedCheckpoint): Promise<string | undefined> {
    const kept = openCheckpoint(note, key);
    if (kept === undefined) {
      const { origin = 'none', size = 0 } = parseCheckpoint(parseNote(note)?.text ?? '') ?? {};
      throw new UnusableInput(
        `--checkpoints: that of ${origin}, size ${size}, is not signed by the key of ${key.name}`,
      );
    }
    if (kept.size > served.size) {
      return `the service shows a checkpoint of size ${served.size}, and has signed one of size ${kept.size} before`;
    }
    const tiles = new Map<string, string>();
    const readTiles: ReadTiles = (refs) =>
      Promise.all(
        refs.map(async (ref) => {
          const tile = tileAt(ref, served.size);
          if (tile === undefined) return undefined;
          const bytes = await this.#service.readBytes(`${prefix}/${tilePath(tile)}`);
          tiles.set(tilePath(tile), Buffer.from(bytes).toString('base64'));
          return bytes;
        }),
      );
    const root = await rootOfTiles(served.size, readTiles);
    if (Buffer.compare(root, served.root) !== 0) return 'the service’s tiles have not the root of its checkpoint';
    if (Buffer.compare(await rootOfTiles(kept.size, readTiles), kept.root) === 0) return undefined;
    const file = `${this.#options.checkpoints}.${kept.size}-${served.size}.json`;
    const proof = { kept: note, served: formatNote(served.note), tiles: Object.fromEntries(tiles) };
    writeFileSync(file, `${JSON.stringify(proof, null, 2)}\n`);
    return `the log of size ${served.size} does not extend the checkpoint of size ${kept.size} that the service signed before: ${file} proves it`;
  }

  #find(): Promise<Log | undefined> {
    this.#log ??= this.#read();
    return this.#log;
  }

  async #read(): Promise<Log | undefined> {
    const found = await this.#service.read('/').catch(orUndefined);
    const { log } = Object(found?.body) as { readonly log?: unknown };
    const { prefix, checkpointKey } = Object(log) as { readonly prefix?: unknown; readonly checkpointKey?: unknown };
    if (typeof prefix !== 'string' || typeof checkpointKey !== 'string') return undefined;
    const key = parseVerifierKey(checkpointKey);
    const known = this.#options.witnessPolicy?.logs ?? [];
    const isKnown = known.length === 0 || known.some(({ keyId, name }) => keyId === key?.keyId && name === key.name);
    if (!isKnown) throw new UnusableInput('--witnesses names other logs than that of the service');
    return key && { prefix, key };
  }
}

const TEXT_LINES_MIN = 3;

/** The notes in a text, one after the other: lines, an empty one, and lines of signatures. In one pass, as the text may be hostile. */
export function splitNotes(text: string): readonly string[] {
  const notes: string[] = [];
  let lines: string[] = [];
  let signatures: string[] = [];
  let isEnded = false;
  const begin = () => {
    if (signatures.length > 0) notes.push(`${[...lines, '', ...signatures].join('\n')}\n`);
    [lines, signatures, isEnded] = [[], [], false];
  };
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (/^\u2014 ./u.test(line)) {
      if (isEnded) signatures.push(line);
      else begin();
    } else if (line === '' && !isEnded && lines.length >= TEXT_LINES_MIN) isEnded = true;
    else {
      if (line === '' || isEnded) begin();
      if (line !== '') lines.push(line);
    }
  }
  begin();
  return notes;
}

function orUndefined(error: unknown): undefined {
  if (error instanceof UnusableInput) return undefined;
  throw error;
}
