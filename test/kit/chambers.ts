// Creates chambers over HTTP whose phases last an hour from the clock's time, and advances them to the phase of a test.
import { commitmentHash } from '../../src/crypto/commitment.ts';
import { type Forum, merklePreview } from '../../src/forum/forum.ts';
import type { ServicePayloads } from '../../src/vocabulary/service-payloads.ts';
import { DEADLINES, type DeadlineName, PHASES, type Phase, toTimestamp } from '../../src/vocabulary/values.ts';
import { HOUR } from './clock.ts';
import type { Signer } from './signer.ts';
import type { TestService } from './test-service.ts';

/** Deadlines in hours from `now`, in the order of the phases. */
export function deadlinesFrom(now: number, hours: readonly number[] = [1, 2, 3, 4, 5]): Record<DeadlineName, string> {
  const entries = DEADLINES.map((name, index) => [name, toTimestamp(now + (hours[index] ?? 0) * HOUR)]);
  return Object.fromEntries(entries) as Record<DeadlineName, string>;
}

/** Creates a chamber in LOBBY, which the agents join in this order, and returns its id. */
export async function openChamber(
  service: TestService,
  members: readonly Signer[],
  changes: Readonly<Record<string, unknown>> = {},
): Promise<number> {
  const by = members[0] ?? (await service.agent());
  const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), ...changes };
  const { chamberId } = await service.must('POST', '/chambers', { by, body });
  for (const member of members) await service.must('POST', `/chambers/${chamberId}/join`, { by: member });
  return chamberId;
}

/** Advances the clock to the beginning of the phase. */
export async function enterPhase(
  service: TestService,
  chamberId: number,
  phase: Exclude<Phase, 'LOBBY'>,
): Promise<void> {
  const { deadlines } = await service.must('GET', `/chambers/${chamberId}`);
  const begin = Date.parse(deadlines[DEADLINES[PHASES.indexOf(phase) - 1] as DeadlineName]);
  service.clock.set(Math.max(begin, service.clock.read()));
  if (phase === 'COMMITTED') await recordCommit(service.forum, chamberId);
}

/** Records the chamber's root as committed on a fictitious chain. */
export async function recordCommit(forum: Forum, chamberId: number): Promise<void> {
  const chamber = await forum.chamber(chamberId);
  if (chamber === undefined) throw new Error(`chamber ${chamberId} not found`);
  const { root, eventCount } = merklePreview(chamber);
  const payload = { ...COMMITTED, merkleRoot: root, eventCount };
  await forum.submit({ operation: 'record', chamberId, fact: { type: 'chamber.committed', payload } });
}

export const SALT = `0x${'5a'.repeat(32)}` as const;

/** Returns the request bodies that commit and reveal an allocation. */
export function allocationOf(
  chamberId: number,
  { did }: Pick<Signer, 'did'>,
  bpsByIdea: Readonly<Record<string, number>> = {},
) {
  const allocations = Object.entries(bpsByIdea).map(([ideaId, bps]) => ({ ideaId, bps }));
  const commitment = commitmentHash({ chamberId, did, allocations, salt: SALT });
  return { commit: { commitment }, reveal: { allocations, salt: SALT } };
}

const COMMITTED: ServicePayloads['chamber.committed'] = {
  merkleRoot: `0x${'11'.repeat(32)}`,
  eventCount: 3,
  txHash: `0x${'22'.repeat(32)}`,
  blockNumber: 5,
  committedAt: '2030-01-02T00:00:00.000Z',
};
