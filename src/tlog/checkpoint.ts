// The text of a checkpoint (c2sp.org/tlog-checkpoint): the log's origin, and the tree's size and root.
import { base64 } from '@scure/base';
import { decodeBase64 } from './note.ts';
import { HASH_BYTES } from './tree.ts';

export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

const SIZE = /^(0|[1-9][0-9]{0,15})$/;

export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${base64.encode(root)}\n`;
}

/** Ignores extension lines. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  const lines = text.split('\n');
  const isEnded = lines.pop() === '';
  const [origin = '', size = '', root = ''] = lines;
  const hash = decodeBase64(root);
  if (!isEnded || lines.some((line) => line === '') || hash?.length !== HASH_BYTES) return undefined;
  const count = parseCount(size);
  return count === undefined ? undefined : { origin, size: count, root: hash };
}

/** Parses a decimal number without leading zeros, up to 2^53 - 1. */
export function parseCount(text: string): number | undefined {
  const count = SIZE.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(count) ? count : undefined;
}
