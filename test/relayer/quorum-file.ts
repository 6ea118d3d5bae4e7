// Writes a sample file for CONTRACTS_FILE, and returns its profile.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quorumProfile } from '../../src/relayer/contracts.ts';
import { readQuorumSettings } from '../../src/relayer/quorum-settings.ts';
import { temporaryFolder } from '../kit/temporary.ts';

const address = (byte: string) => `0x${byte.repeat(20)}`;

export const SETTINGS = {
  image: 'ipfs://image',
  metadata: '{"kind":"idea"}',
  context: 'chamber',
  protocolTreasury: address('a1'),
  winnersSplitter: address('a2'),
  forPool: address('a3'),
  againstPool: address('a4'),
  executorPool: address('a5'),
  bps: [5_000, 2_000, 1_000, 1_000, 500, 500],
  pairedToken: address('a6'),
  tickIfToken0IsClanker: -230_400,
  tickSpacing: 200,
  poolData: '0x01',
  tickLower: [-230_400],
  tickUpper: [-120_000],
  positionBps: [10_000],
  lockerData: '0x',
  mevModuleData: '0x0203',
} as const;

export function quorumFile(changes: object = {}): string {
  const path = join(temporaryFolder(), 'quorum.json');
  writeFileSync(path, JSON.stringify({ ...SETTINGS, ...changes }));
  return path;
}

export function quorumContracts(changes: object = {}) {
  return quorumProfile(readQuorumSettings(quorumFile(changes)));
}
