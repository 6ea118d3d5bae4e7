// The files of a witness: its key, for its owner alone, and the last checkpoint of each log, replaced as a whole before it cosigns.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { base64 } from '@scure/base';
import * as v from 'valibot';
import { createFileSync, replaceFileSync } from '../files/durable-file.ts';
import type { Misbehaviour } from '../tlog/misbehaviour.ts';
import { HASH_BYTES } from '../tlog/tree.ts';
import type { WitnessedTree } from './witness.ts';

const OWNER_ONLY = 0o600;
const NAME_HASH_CHARS = 12;
const SEED = /^[0-9a-f]{64}$/;

const keyFile = v.strictObject({ name: v.string(), seed: v.pipe(v.string(), v.regex(SEED)) });
const stateFile = v.record(
  v.string(),
  v.strictObject({ size: v.pipe(v.number(), v.safeInteger()), root: v.string(), note: v.string() }),
);

export interface WitnessKey {
  readonly name: string;
  readonly seed: Uint8Array;
}

/** The key in the file; one of that name is made where there is none. Throws an Error of one line. */
export function openWitnessKey(path: string, name: string | undefined, newSeed: () => Uint8Array): WitnessKey {
  const text = readText(path);
  if (text === undefined) {
    if (name === undefined) throw new Error(`${path} not found: give the witness a name, and it is made`);
    const seed = newSeed();
    const file = { name, seed: Buffer.from(seed).toString('hex') };
    createFileSync(path, `${JSON.stringify(file)}\n`, { mode: OWNER_ONLY });
    return { name, seed };
  }
  const parsed = v.safeParse(keyFile, toJson(text));
  if (!parsed.success) throw new Error(`${path} is not the key file of a witness`);
  if (name !== undefined && name !== parsed.output.name) {
    throw new Error(`${path} holds the key of ${parsed.output.name}, not of ${name}`);
  }
  return { name: parsed.output.name, seed: Buffer.from(parsed.output.seed, 'hex') };
}

export class WitnessState {
  readonly #path: string;
  readonly #trees: Map<string, WitnessedTree>;

  /** Throws an Error of one line: a witness that forgot what it cosigned must not go on. */
  constructor(path: string) {
    this.#path = path;
    const text = readText(path);
    const parsed = v.safeParse(stateFile, text === undefined ? {} : toJson(text));
    if (!parsed.success)
      throw new Error(`${path} is damaged: restore it, since the witness must not forget what it cosigned`);
    const trees = Object.entries(parsed.output).map(([origin, { root, ...tree }]) => {
      const bytes = base64.decode(root);
      if (bytes.length !== HASH_BYTES) throw new Error(`${path} is damaged: ${origin} has no root`);
      return [origin, { ...tree, root: bytes }] as const;
    });
    this.#trees = new Map(trees);
  }

  readonly recall = (origin: string): WitnessedTree | undefined => this.#trees.get(origin);

  readonly remember = (origin: string, tree: WitnessedTree): void => {
    const next = new Map(this.#trees).set(origin, tree);
    const rows = [...next].map(([name, { root, ...rest }]) => [name, { ...rest, root: base64.encode(root) }]);
    replaceFileSync(this.#path, `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`, { mode: OWNER_ONLY });
    this.#trees.set(origin, tree);
  };

  /** Keeps the proof next to the state: one for each checkpoint that the log does not extend. Returns the file. */
  readonly keep = (proof: Misbehaviour): string => {
    const [note = ''] = proof.kind === 'two-checkpoints' ? proof.checkpoints : [];
    const name = createHash('sha256').update(note).digest('hex').slice(0, NAME_HASH_CHARS);
    const file = `${this.#path}.fork-${name}.json`;
    replaceFileSync(file, `${JSON.stringify(proof, null, 2)}\n`);
    return file;
  };
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
