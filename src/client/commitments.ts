// What an agent must not lose between commit and reveal. Records are added under their own hash and never replaced, so no
// later commitment can cost the salt of one that is in force.
import { commitmentHash, type Opening } from '../crypto/commitment.ts';
import { toHex } from '../vocabulary/hex.ts';
import type { Allocation, Hex } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

export type { Opening };

export interface CommitmentStore {
  /** Keeps the opening; it must be safe when the promise resolves. */
  add(commitment: Hex, opening: Opening): Promise<void>;
  find(commitment: Hex): Promise<Opening | undefined>;
}

const SALT_BYTES = 32;
const BPS_TOTAL = 10_000;

/** For agents that live no longer than the process. */
export function memoryStore(): CommitmentStore {
  const openings = new Map<Hex, Opening>();
  return {
    add: async (commitment, opening) => void openings.set(commitment, opening),
    find: async (commitment) => openings.get(commitment),
  };
}

/** For browsers: over localStorage or its like. */
export function webStore(storage: WebStorage): CommitmentStore {
  const nameOf = (commitment: Hex) => `chamber-commitment:${commitment}`;
  return {
    add: async (commitment, opening) => storage.setItem(nameOf(commitment), JSON.stringify(opening)),
    find: async (commitment) => {
      const text = storage.getItem(nameOf(commitment));
      return text === null ? undefined : (JSON.parse(text) as Opening);
    },
  };
}

interface WebStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
}

/** A commitment with a fresh salt, already kept in the store. */
export async function draftCommitment(
  store: CommitmentStore,
  { chamberId, did, allocations }: Omit<Opening, 'salt'>,
): Promise<Hex> {
  const salt = toHex(crypto.getRandomValues(new Uint8Array(SALT_BYTES)));
  const opening = { chamberId, did, allocations: allocations.map(({ ideaId, bps }) => ({ ideaId, bps })), salt };
  const commitment = commitmentHash(opening);
  await store.add(commitment, opening);
  return commitment;
}

/** Refuses what could be committed to but never revealed. */
export function checkAllocations(allocations: readonly Allocation[], ideaIds: ReadonlySet<string>): void {
  const stranger = allocations.find(({ ideaId }) => !ideaIds.has(ideaId));
  if (stranger !== undefined) throw input(`there is no idea ${stranger.ideaId} in the chamber`);
  if (new Set(allocations.map(({ ideaId }) => ideaId)).size < allocations.length) throw input('name each idea once');
  if (allocations.some(({ bps }) => !Number.isInteger(bps) || bps < 0)) throw input('bps are integers from 0 to 10000');
  const total = allocations.reduce((sum, { bps }) => sum + bps, 0);
  if (total > BPS_TOTAL) throw input(`the bps add up to ${total}, which is more than ${BPS_TOTAL}`);
}

function input(detail: string): ClientError {
  return new ClientError('CLIENT_ERR_INPUT', detail);
}
