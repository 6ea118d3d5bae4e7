// The chambers and agents of the load: full chambers, and honest agents that debate in their own chambers.
import { createHash } from 'node:crypto';
import { openPostgresStore } from '../../../src/log/postgres/store.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import type { Store } from '../../../src/log/store.ts';
import type { WalletProof } from '../../../src/vocabulary/events.ts';
import { deepRefinement, FullLogWriter, LONGEST_TEXT } from '../../kit/full-log.ts';
import { Signer } from '../../kit/signer.ts';

/** The base URL that signatures cover. */
export const PUBLIC_URL = 'http://service.test';

export const FULL_CHAMBERS = 20;
export const HONEST_AGENTS = 10;

/** The comments of one day in a busy chamber. */
const COMMENTS_OF_LONG_CHAMBER = 8_500;
const COMMENTS_OF_DEEP_CHAMBER = 100;

/** The attackers' agent; its chamber follows those of the honest agents. */
export const ATTACKERS_AGENT = new Signer(createHash('sha256').update('hostile agent').digest());

/** Returns the same agent in every process. */
export function honestAgent(index: number): Signer {
  return new Signer(createHash('sha256').update(`honest agent ${index}`).digest());
}

/** A full chamber with thousands of comments. */
export const LONG_CHAMBER = 1;
/** A full chamber whose comments have refinements of maximum depth. */
export const DEEP_CHAMBER = 2;

/** A chamber whose root is on the chain while none of its graduated ideas has a token. */
export const DEPLOYING_CHAMBER = 3;
const GRADUATES = 250;
/** The first of the full chambers whose tokens are deployed. */
export const FIRST_SETTLED_CHAMBER = 11;

/** The agent's chamber; chambers 1 to FULL_CHAMBERS are the full ones. */
export function chamberOf(agentIndex: number): number {
  return FULL_CHAMBERS + 1 + agentIndex;
}

/** The settings that locate the log. */
type StoreSettings = { readonly DATABASE_PATH: string } | { readonly DATABASE_URL: string };

export async function openStore(settings: StoreSettings): Promise<Store> {
  if ('DATABASE_PATH' in settings) return openSqliteStore(settings.DATABASE_PATH);
  return await openPostgresStore({ url: settings.DATABASE_URL, connectionsMax: 1 });
}

export async function writeScene(settings: StoreSettings): Promise<void> {
  const store = await openStore(settings);
  const writer = new FullLogWriter(store.log);
  for (let id = 1; id <= FULL_CHAMBERS; id++) {
    const comments = commentsOf(id);
    const isDeploying = id === DEPLOYING_CHAMBER;
    const settling = { isCommitted: isDeploying || id >= FIRST_SETTLED_CHAMBER, deployed: isDeploying ? 0 : 5 };
    const backed = isDeploying ? GRADUATES : 2;
    await writer.writeChamber(id, { text: LONGEST_TEXT, backed, ...settling, ...(comments && { comments }) });
  }
  const agents = [...Array.from({ length: HONEST_AGENTS }, (_, index) => honestAgent(index)), ATTACKERS_AGENT];
  await writer.writeAccounts(
    agents.map(({ did, pubkeyHex }, index) => ({ did, pubkeyHex, walletProof: proofOf(index) })),
  );
  for (const [index, { did }] of agents.entries()) await writer.writeDebate(chamberOf(index), did);
  await store.close();
}

/** Every other wallet is a contract. */
function proofOf(index: number): WalletProof {
  const proof = { signature: `0x${'00'.repeat(65)}`, issuedAt: '2026-01-01T00:00:00Z', service: PUBLIC_URL } as const;
  const block = { chainId: 1, blockNumber: 1, blockHash: `0x${'00'.repeat(32)}` } as const;
  return index % 2 === 0 ? proof : { ...proof, ...block };
}

function commentsOf(chamberId: number) {
  const comment = 'The reserve should cover two quarters of costs. '.repeat(8);
  if (chamberId === LONG_CHAMBER) return { count: COMMENTS_OF_LONG_CHAMBER, comment, refinement: null };
  if (chamberId === DEEP_CHAMBER) return { count: COMMENTS_OF_DEEP_CHAMBER, comment, refinement: deepRefinement() };
  return undefined;
}
