// What the load plays in: full chambers, and honest agents that debate in chambers of their own.
import { createHash } from 'node:crypto';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { deepRefinement, FullLogWriter, LONGEST_TEXT } from '../../kit/full-log.ts';
import { Signer } from '../../kit/signer.ts';

/** What signatures cover. */
export const PUBLIC_URL = 'http://service.test';

export const FULL_CHAMBERS = 20;
export const HONEST_AGENTS = 10;

/** As long as one day of a busy chamber. */
const COMMENTS_OF_LONG_CHAMBER = 8_500;
const COMMENTS_OF_DEEP_CHAMBER = 100;

/** The same in every process. */
export function honestAgent(index: number): Signer {
  return new Signer(createHash('sha256').update(`honest agent ${index}`).digest());
}

/** Full, and with thousands of comments. */
export const LONG_CHAMBER = 1;
/** Full, and its comments have refinements that are nested as deeply as may be. */
export const DEEP_CHAMBER = 2;

/** Chambers 1 to FULL_CHAMBERS are full. */
export function chamberOf(agentIndex: number): number {
  return FULL_CHAMBERS + 1 + agentIndex;
}

export async function writeScene(path: string): Promise<void> {
  const store = openSqliteStore(path);
  const writer = new FullLogWriter(store.log);
  for (let id = 1; id <= FULL_CHAMBERS; id++) {
    const comments = commentsOf(id);
    await writer.writeChamber(id, { text: LONGEST_TEXT, backed: 2, deployed: 5, ...(comments && { comments }) });
  }
  const agents = Array.from({ length: HONEST_AGENTS }, (_, index) => honestAgent(index));
  await writer.writeAccounts(agents);
  for (const [index, { did }] of agents.entries()) await writer.writeDebate(chamberOf(index), did);
  await store.close();
}

function commentsOf(chamberId: number) {
  const comment = 'The reserve should cover two quarters of costs. '.repeat(8);
  if (chamberId === LONG_CHAMBER) return { count: COMMENTS_OF_LONG_CHAMBER, comment, refinement: null };
  if (chamberId === DEEP_CHAMBER) return { count: COMMENTS_OF_DEEP_CHAMBER, comment, refinement: deepRefinement() };
  return undefined;
}
