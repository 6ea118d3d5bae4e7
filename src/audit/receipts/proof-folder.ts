// The folder for proofs of misbehaviour. Files are named by their content, so no proof replaces another.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { makeFolder, replaceFile } from '../../files/durable-file.ts';
import { type Misbehaviour, verifyMisbehaviour } from '../../tlog/misbehaviour.ts';

const NAME_HASH_CHARS = 12;

export interface KeptProof {
  readonly file: string;
  readonly sentence: string;
}

export class ProofFolder {
  readonly #path: string;

  constructor(path = 'proofs') {
    this.#path = path;
  }

  /** Writes evidence that proves nothing by itself; returns the path of the file. */
  async keepEvidence(name: string, content: object): Promise<string> {
    const text = `${JSON.stringify(content, null, 2)}\n`;
    const file = join(this.#path, `evidence-${name}-${hashOf(text)}.json`);
    await makeFolder(this.#path);
    await replaceFile(file, text);
    return file;
  }

  /** Verifies and writes a proof; returns undefined if it proves nothing. */
  async keep(proof: Misbehaviour): Promise<KeptProof | undefined> {
    const proved = await verifyMisbehaviour(proof).catch(() => undefined);
    if (proved === undefined) return undefined;
    const text = `${JSON.stringify(proof, null, 2)}\n`;
    const file = join(this.#path, `${proof.kind}-${hashOf(text)}.json`);
    await makeFolder(this.#path);
    await replaceFile(file, text);
    return { file, sentence: proved.sentence };
  }
}

/** Formats a proof for reports: the sentence without its capital and full stop, and the file. */
export function provedBy({ file, sentence }: KeptProof): string {
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1).replace(/\.$/, '')}: ${file} proves it`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, NAME_HASH_CHARS);
}
