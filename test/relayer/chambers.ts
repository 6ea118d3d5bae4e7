// Adds closed chambers for the relayer, with ideas that some members have backed.
import { DEADLINES, type Deadlines, toTimestamp } from '../../src/vocabulary/values.ts';
import type { MemoryForum } from './memory-forum.ts';

const WALLET = '0x90F79bf6EB2c4f870365E785982E1f101E93b906';
const ANN = 'did:key:ann';
const BOB = 'did:key:bob';

export interface IdeaSketch {
  readonly ticker: string;
  /** The number of backers among the two members. */
  readonly backers: 0 | 1 | 2;
  readonly creatorWallet?: string;
  readonly description?: string;
  /** The idea's name after an amendment. */
  readonly amendedName?: string;
}

/** Adds a chamber whose reveal deadline passes `closesInMillis` from now; one backer makes a graduate. */
export function addChamber(
  forum: MemoryForum,
  chamberId: number,
  ideas: readonly IdeaSketch[],
  { closesInMillis = 0 }: { readonly closesInMillis?: number } = {},
): void {
  const deadline = toTimestamp(Date.now() + closesInMillis);
  const deadlines = Object.fromEntries(DEADLINES.map((name) => [name, deadline])) as Deadlines;
  const created = { name: `Chamber ${chamberId}`, deadlines, minBackersForGraduation: 1, turnSeconds: null };
  forum.move(chamberId, ANN, { type: 'chamber.created', payload: created });
  forum.move(chamberId, ANN, { type: 'chamber.joined', payload: { turnOrder: 0 } });
  forum.move(chamberId, BOB, { type: 'chamber.joined', payload: { turnOrder: 1 } });
  for (const [index, { ticker, creatorWallet = WALLET, description = `Why ${ticker} matters.` }] of ideas.entries()) {
    const slot = index + 1;
    const text = { name: `Idea ${ticker}`, ticker, description, creatorWallet };
    forum.move(chamberId, ANN, { type: 'chamber.proposed', payload: { ideaId: `idea-${slot}`, slot, ...text } });
  }
  for (const [index, { amendedName: name }] of ideas.entries()) {
    if (name === undefined) continue;
    forum.move(chamberId, ANN, { type: 'chamber.amended', payload: { ideaId: `idea-${index + 1}`, version: 2, name } });
  }
  for (const [index, did] of [ANN, BOB].entries()) {
    const allocations = ideas.map(({ backers }, slot) => ({
      ideaId: `idea-${slot + 1}`,
      bps: backers > index ? 100 : 0,
    }));
    forum.move(chamberId, did, { type: 'allocation.revealed', payload: { allocations, salt: '0x00' } });
  }
}
