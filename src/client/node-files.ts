// Keys, commitments and cursors in files, for Node. Its modules are asked for at run time, so that a browser bundle of the
// library holds none of them.
import { fromHex, toHex } from '../vocabulary/hex.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { Cursor } from './chain.ts';
import type { CommitmentStore, Opening } from './commitments.ts';
import { ClientError } from './error.ts';
import type { CursorStore } from './lines.ts';
import { randomSeed, toSigner } from './signing.ts';

const OTHERS_MAY = 0o077;

/** The seed in a key file; where there is no file, it is made with a new seed, for its owner only (mode 0600). */
export async function seedFromFile(path: string): Promise<Uint8Array> {
  const text = (await readIfThere(path)) ?? (await createKeyFile(path));
  const { fs } = node();
  if (((await fs.stat(path)).mode & OTHERS_MAY) !== 0) {
    throw new ClientError('CLIENT_ERR_KEY', `the key file ${path} is open to others: chmod 600 ${path}`);
  }
  return seedFrom(text, path);
}

function seedFrom(text: string, path: string): Uint8Array {
  const [seed] = /(?<="seed":\s*")0x[0-9a-f]{64}(?=")/.exec(text) ?? [];
  if (seed !== undefined) return fromHex(seed);
  throw new ClientError('CLIENT_ERR_KEY', `${path} is not a key file: a JSON object with "seed": "0x…" of 32 bytes`);
}

/** Links a whole file into place, so that nobody reads half a key and nobody's key is replaced. */
async function createKeyFile(path: string): Promise<string> {
  const seed = randomSeed();
  const text = `${JSON.stringify({ did: toSigner(seed).did, seed: toHex(seed) }, null, 2)}\n`;
  const { fs, dirname } = node();
  await fs.mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${toHex(randomSeed().subarray(0, 4)).slice(2)}`;
  await writeDurably(draft, text);
  try {
    await fs.link(draft, path);
    return text;
  } catch (error) {
    const existing = await readIfThere(path);
    if (existing === undefined) throw error;
    return existing;
  } finally {
    await fs.unlink(draft);
  }
}

/** One file for each commitment, in a folder for its owner only. */
export function folderStore(folder: string): CommitmentStore {
  const { fs } = node();
  const pathOf = (commitment: Hex) => `${folder}/${commitment}.json`;
  return {
    add: async (commitment, opening) => {
      await fs.mkdir(folder, { recursive: true, mode: 0o700 });
      await writeDurably(pathOf(commitment), `${JSON.stringify(opening)}\n`);
    },
    find: async (commitment) => {
      const text = await readIfThere(pathOf(commitment));
      return text === undefined ? undefined : (JSON.parse(text) as Opening);
    },
  };
}

/** A cursor in a file, replaced whole. */
export function fileCursor(path: string): CursorStore {
  const { fs } = node();
  return {
    load: async () => {
      const text = await readIfThere(path);
      return text === undefined ? undefined : (JSON.parse(text) as Cursor);
    },
    save: async ({ eventId, leaf }) => {
      const draft = `${path}.next`;
      await fs.writeFile(draft, `${JSON.stringify({ eventId, leaf })}\n`);
      await fs.rename(draft, path);
    },
  };
}

/** Writes a new file that is on disk when the promise resolves, and fails where there is one. */
async function writeDurably(path: string, text: string): Promise<void> {
  const file = await node().fs.open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await node().fs.readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function node() {
  const load = globalThis.process?.getBuiltinModule;
  if (load === undefined) throw new ClientError('CLIENT_ERR_KEY', 'files need Node 22.14 or later: use fromSeed here');
  return { fs: load('node:fs/promises'), dirname: load('node:path').dirname };
}
