// Fills a chamber quickly with unsigned comments.
import type { Running } from './service.ts';

interface Debates {
  readonly did: string;
  readonly chamberId: number;
  readonly count: number;
  /** Text that makes each event larger. */
  readonly bulk?: string;
}

export async function appendDebates(
  { service }: Running,
  { did, chamberId, count, bulk = '' }: Debates,
): Promise<void> {
  const caller = { did, request: null, signature: null, times: null };
  const body = { json: { comment: 'hm', refinement: { bulk } } };
  for (let at = 0; at < count; at++) {
    await service.forum.submit({ operation: 'debate', chamberId, body, caller });
  }
}
