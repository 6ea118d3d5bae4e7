// Asks witnesses to cosign checkpoints (c2sp.org/tlog-witness), and adds their cosignatures to the stored note. Nothing waits for witnesses:
// a hang or an invalid response is only logged and counted.
import { setTimeout as sleep } from 'node:timers/promises';
import { base64 } from '@scure/base';
import type { Logger } from 'pino';
import { consistencyProof } from '../crypto/merkle-proof.ts';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { PublishedTree, StoredCheckpoint } from '../log/published-tree.ts';
import { detach } from '../process/detach.ts';
import { type Fetch, openResponse } from '../reading/response.ts';
import { parseCount } from '../tlog/checkpoint.ts';
import { formatNote, type NoteSignature, parseNote, parseSignatureLines, signatureBy } from '../tlog/note.ts';
import type { PolicyWitness } from '../tlog/policy.ts';
import { nodesOfTiles } from '../tlog/tiled-tree.ts';
import { TREE } from '../tlog/tree.ts';

/** The content type of a 409 with the size of the last checkpoint that the witness cosigned. */
const TLOG_SIZE = 'text/x.tlog.size';
/** From the request to the end of the response. */
const WITNESS_MS_MAX = 5_000;
const RESPONSE_BYTES_MAX = 65_536;
/** The pause after a failure. */
const PAUSE_MS = 10_000;
/** The first request after a start may only return the witness's last size. */
const REQUESTS_MAX = 2;
/** Retries, because other cosignatures may change the note concurrently. */
const ADDS_MAX = 5;

interface WitnessesOptions {
  readonly witnesses: readonly PolicyWitness[];
  readonly tree: PublishedTree;
  readonly logger: Logger;
  readonly fetch?: Fetch;
}

interface Asked extends PolicyWitness {
  readonly url: string;
  /** The size of the witness's last cosigned checkpoint; 0 if unknown. */
  size: number;
  isBusy: boolean;
}

export class Witnesses {
  readonly #options: WitnessesOptions;
  readonly #asked: readonly Asked[];
  readonly #problems = new RepeatedLog();
  readonly #stop = new AbortController();
  #cosignatures = 0;
  #failures = 0;
  #late = 0;

  constructor(options: WitnessesOptions) {
    this.#options = options;
    this.#asked = options.witnesses.flatMap(({ url, ...rest }) =>
      url === undefined ? [] : [{ ...rest, url, size: 0, isBusy: false }],
    );
  }

  /** Counts since the start. */
  state() {
    return { cosignatures: this.#cosignatures, failures: this.#failures, lateCosignatures: this.#late };
  }

  /** Asks each witness that has not cosigned the checkpoint and has no request in progress. */
  ask(checkpoint: StoredCheckpoint): void {
    const { signatures = [] } = parseNote(checkpoint.note) ?? {};
    for (const witness of this.#asked) {
      const isCosigned = signatures.some(({ name, keyId }) => name === witness.key.name && keyId === witness.key.keyId);
      if (!isCosigned && !witness.isBusy) detach(this.#attempt(witness, checkpoint));
    }
  }

  async #attempt(witness: Asked, checkpoint: StoredCheckpoint): Promise<void> {
    witness.isBusy = true;
    try {
      const isAdded = await this.#add(checkpoint, await this.#cosign(witness, checkpoint));
      if (!isAdded) return this.#reportLate(witness);
      this.#problems.end(witness.name, () =>
        this.#options.logger.info({ witness: witness.name }, 'the witness cosigns again'),
      );
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#failures++;
      const { message: reason } = error as Error;
      this.#problems.report(witness.name, reason, (repeats) => {
        this.#options.logger.warn({ witness: witness.name, reason, ...repeats }, 'no cosignature of the witness');
      });
      await sleep(PAUSE_MS, undefined, { signal: this.#stop.signal, ref: false }).catch(() => {});
    } finally {
      witness.isBusy = false;
    }
  }

  #reportLate({ name }: Asked): void {
    this.#late++;
    const reason = 'it arrived after the next checkpoint was published';
    this.#problems.report(name, reason, (repeats) => {
      this.#options.logger.warn({ witness: name, reason, ...repeats }, 'cosignature of the witness not added');
    });
  }

  async #cosign(witness: Asked, checkpoint: StoredCheckpoint): Promise<NoteSignature> {
    for (let requests = 1; ; requests++) {
      const { status, type, text } = await this.#send(witness, checkpoint);
      if (status === 200) {
        witness.size = checkpoint.size;
        return cosignatureIn(text, witness, checkpoint);
      }
      const size = status === 409 && type.startsWith(TLOG_SIZE) ? parseCount(text.replace(/\n$/, '')) : undefined;
      if (size === undefined) throw new Error(`it returned ${status}`);
      if (size > checkpoint.size) {
        throw new Error(
          `it says that it cosigned a checkpoint of size ${size}, but the log has published only ${checkpoint.size}: was the database restored?`,
        );
      }
      if (requests === REQUESTS_MAX) throw new Error(`it named the size ${size}, but ${witness.size} before`);
      witness.size = size;
    }
  }

  async #send({ url, size: oldSize }: Asked, { size, note }: StoredCheckpoint) {
    const read = nodesOfTiles(this.#options.tree.readTiles);
    const isFirst = oldSize === 0 || oldSize === size;
    const proof = isFirst ? [] : await consistencyProof(oldSize, size, read, TREE.hashNodes);
    const body = [`old ${oldSize}`, ...proof.map((hash) => base64.encode(hash)), '', note].join('\n');
    const request = { method: 'POST', body };
    const deadlines = { wholeMillisMax: WITNESS_MS_MAX, signal: this.#stop.signal };
    const response = await openResponse(this.#options.fetch ?? fetch, `${url}/add-checkpoint`, request, deadlines);
    const text = await response.text({ responseBytesMax: RESPONSE_BYTES_MAX });
    return { status: response.status, type: response.headers.get('content-type') ?? '', text };
  }

  /** Resolves to false if the log already has a newer checkpoint. */
  async #add(checkpoint: StoredCheckpoint, signature: NoteSignature): Promise<boolean> {
    for (let attempts = 0; attempts < ADDS_MAX; attempts++) {
      const stored = await this.#options.tree.checkpoint();
      const note = stored && parseNote(stored.note);
      if (stored?.size !== checkpoint.size || note === undefined) return false;
      const cosigned = formatNote({ ...note, signatures: [...note.signatures, signature] });
      if (!(await this.#options.tree.replaceNote(stored, cosigned))) continue;
      this.#cosignatures++;
      return true;
    }
    return false;
  }

  stop(): void {
    this.#stop.abort();
  }
}

function cosignatureIn(text: string, { key }: PolicyWitness, { note }: StoredCheckpoint): NoteSignature {
  const signatures = parseSignatureLines(text) ?? [];
  const own = signatureBy(key, { text: parseNote(note)?.text ?? '', signatures });
  if (own === undefined) throw new Error('it returned no valid cosignature of its key');
  return own;
}
