// Stores for keys, commitments, cursors and receipts: in memory, in a browser's storage, in files. Node's modules are loaded at run time,
// so that browser bundles don't contain them.
import { type KeptReceipt, parseReceipt } from '../crypto/receipt.ts';
import { appendLine, createFile, makeFolder, replaceFile } from '../files/durable-file.ts';
import { isOpenToOthers } from '../files/private-file.ts';
import { messageOf } from '../vocabulary/errors.ts';
import { fromHex, type Hex, toHex } from '../vocabulary/values.ts';
import type { StoredOpening } from './binding.ts';
import { ClientError } from './error.ts';
import type { Cursor, CursorStore } from './events.ts';
import { randomSeed, toSigner } from './signing.ts';

/** Openings by commitment. No opening is ever replaced, so a later commitment can't lose the salt of the accepted one. */
export interface CommitmentStore {
  /** Resolves once the opening is durable. */
  add(commitment: Hex, opening: StoredOpening): Promise<void>;
  find(commitment: Hex): Promise<StoredOpening | undefined>;
}

/** Validates a commitment, which may become part of a path and may come from the service. */
export function isCommitment(text: unknown): text is Hex {
  return typeof text === 'string' && /^0x[0-9a-f]{64}$/.test(text);
}

function requireCommitment(commitment: Hex): Hex {
  if (isCommitment(commitment)) return commitment;
  throw new ClientError('CLIENT_ERR_INPUT', 'a commitment is 0x and 64 hex digits in lower case');
}

/** Returns a store for agents that live only as long as the process. */
export function memoryStore(): CommitmentStore {
  const openings = new Map<Hex, StoredOpening>();
  return {
    add: async (commitment, opening) => {
      openings.set(commitment, opening);
    },
    find: async (commitment) => openings.get(commitment),
  };
}

/** Returns a store for browsers, on localStorage or a similar object. */
export function webStore(storage: {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
}): CommitmentStore {
  const nameOf = (commitment: Hex) => `chamber-commitment:${requireCommitment(commitment)}`;
  return {
    add: async (commitment, opening) => storage.setItem(nameOf(commitment), JSON.stringify(opening)),
    find: async (commitment) => parse<StoredOpening>(storage.getItem(nameOf(commitment))),
  };
}

const OWNER_ONLY = { mode: 0o600 } as const;
const FOLDER_OF_OWNER = { mode: 0o700 } as const;

/** Returns a store with one file for each commitment, in a folder that only its owner can read. */
export function folderStore(folder: string): CommitmentStore {
  requireFiles();
  const pathOf = (commitment: Hex) => `${folder}/${requireCommitment(commitment)}.json`;
  return {
    add: (commitment, opening) =>
      onDisk(pathOf(commitment), async () => {
        await makeFolder(folder, FOLDER_OF_OWNER);
        await createFile(pathOf(commitment), `${JSON.stringify(opening)}\n`, OWNER_ONLY);
      }),
    find: async (commitment) => {
      const path = pathOf(commitment);
      try {
        return parse<StoredOpening>(await readIfPresent(path));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        throw new ClientError('CLIENT_ERR_COMMITMENT', `${path} is damaged: the salt in it is lost`, { cause: error });
      }
    },
  };
}

/** Returns a store in a file, which is replaced atomically. */
export function fileCursor(path: string): CursorStore {
  requireFiles();
  return {
    load: async () => {
      const text = await readIfPresent(path);
      return await onDisk(path, async () => parse<Cursor>(text));
    },
    save: ({ eventId, leaf }) => onDisk(path, () => replaceFile(path, `${JSON.stringify({ eventId, leaf })}\n`)),
  };
}

/** Receipts by log and stream: a chamber or the agent's account. */
export interface ReceiptStore {
  /** Resolves once the receipt is durable. */
  add(place: ReceiptPlace, receipt: KeptReceipt): Promise<void>;
  /** Returns the receipt that was added last. */
  newest(place: ReceiptPlace): Promise<KeptReceipt | undefined>;
}

export interface ReceiptPlace {
  readonly logId: string;
  /** A chamber's id, or a DID. */
  readonly stream: number | string;
}

/** Returns a store for agents that live only as long as the process. It keeps the last receipt of each stream. */
export function memoryReceipts(): ReceiptStore {
  const receipts = new Map<string, KeptReceipt>();
  return {
    add: async ({ logId, stream }, receipt) => {
      receipts.set(`${logId} ${stream}`, receipt);
    },
    newest: async ({ logId, stream }) => receipts.get(`${logId} ${stream}`),
  };
}

/** Returns a store with a folder for each log, a file for each stream and a line for each receipt. Only the owner can read it. */
export function folderReceipts(folder: string): ReceiptStore {
  requireFiles();
  const pathOf = ({ logId, stream }: ReceiptPlace) =>
    `${folder}/${logId}/${typeof stream === 'number' ? `chamber-${stream}` : 'account'}.ndjson`;
  return {
    add: (place, receipt) =>
      onDisk(pathOf(place), async () => {
        await makeFolder(`${folder}/${place.logId}`, FOLDER_OF_OWNER);
        await appendLine(pathOf(place), JSON.stringify(receipt), OWNER_ONLY);
      }),
    newest: async (place) => newestOf((await readIfPresent(pathOf(place))) ?? ''),
  };
}

/** Skips lines that a crash truncated, or that an earlier release appended to a truncated line. */
function newestOf(lines: string): KeptReceipt | undefined {
  for (const line of lines.split('\n').reverse()) {
    try {
      const receipt = JSON.parse(line) as KeptReceipt;
      parseReceipt(receipt);
      return receipt;
    } catch {
      // Not a receipt.
    }
  }
  return undefined;
}

/** Does not check the value, because the store wrote it. */
function parse<Value>(text: string | null | undefined): Value | undefined {
  return typeof text === 'string' ? (JSON.parse(text) as Value) : undefined;
}

/**
 * Returns the seed in a key file. Creates a missing file with a new seed, readable only by its owner (mode 0600) if the platform has modes.
 */
export async function seedFromFile(path: string, platform?: string): Promise<Uint8Array> {
  const text = (await readIfPresent(path)) ?? (await createKeyFile(path));
  const [seed] = /(?<="seed":\s*")0x[0-9a-f]{64}(?=")/.exec(text) ?? [];
  if (seed === undefined) {
    const expected = 'a JSON object with "seed": "0x…", 32 bytes';
    throw new ClientError('CLIENT_ERR_KEY', `${path} is not a key file: expected ${expected}`);
  }
  if (await onDisk(path, async () => isOpenToOthers(path, platform))) {
    throw new ClientError('CLIENT_ERR_KEY', `the key file ${path} is accessible to other users: run chmod 600 ${path}`);
  }
  return fromHex(seed);
}

/** Creates the file atomically and never replaces it: if several processes create the file, all use the same key. */
async function createKeyFile(path: string): Promise<string> {
  const seed = randomSeed();
  const text = `${JSON.stringify({ did: toSigner(seed).did, seed: toHex(seed) }, null, 2)}\n`;
  try {
    await makeFolder(process.getBuiltinModule('node:path').dirname(path));
    await createFile(path, text, OWNER_ONLY);
    return text;
  } catch (error) {
    const existing = await readIfPresent(path);
    if (existing === undefined) throw storageError(path, error);
    return existing;
  }
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await files().readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw storageError(path, error);
  }
}

async function onDisk<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw storageError(path, error);
  }
}

function storageError(path: string, cause: unknown): ClientError {
  return new ClientError('CLIENT_ERR_STORAGE', `${path} can’t be used: ${messageOf(cause)}`, { cause });
}

/** Throws in browsers, which have no files. */
function requireFiles(): void {
  if (globalThis.process?.getBuiltinModule === undefined) {
    throw new ClientError('CLIENT_ERR_KEY', 'key files require Node 20.19 or later: use fromSeed instead');
  }
}

function files() {
  requireFiles();
  return globalThis.process.getBuiltinModule('node:fs/promises');
}
