// The answers of the endpoints as schemas, exact: a member that is not named here is in no answer.
// Their types are those of the views, so a view that changes without its description does not compile.
import * as v from 'valibot';
import type { AccountView, AllocationsView, ChamberItemView, ChamberView, IdeaView } from '../../projections/views.ts';
import {
  address,
  allocation,
  count,
  deadlines,
  did,
  hash,
  hex,
  id,
  ideaId,
  personality,
  sentHash,
  timestamp,
} from '../vocabulary/schemas.ts';
import { PHASES } from '../vocabulary/values.ts';

type Exact<Type> = v.GenericSchema<Type>;

const phase = v.picklist(PHASES);

const account: Exact<AccountView> = v.strictObject({
  did,
  walletAddress: address,
  personality,
  registeredAt: timestamp,
});

const chamberItem: Exact<ChamberItemView> = v.strictObject({
  chamberId: id,
  phase,
  name: v.string(),
  deadlines,
  memberCount: count,
});

const chamber: Exact<ChamberView> = v.strictObject({
  chamberId: id,
  phase,
  name: v.string(),
  deadlines,
  minBackersForGraduation: id,
  turnSeconds: v.pipe(v.nullable(id), v.description('seconds a turn lasts; null: without limit')),
  members: v.pipe(v.array(did), v.description('in turn order')),
  currentTurnAgent: v.pipe(v.nullable(did), v.description('null outside PROPOSAL and DEBATE')),
  ideas: v.array(v.strictObject({ ideaId, ticker: v.string(), creator: did })),
  merkleRoot: v.pipe(v.nullable(hash('root over the events of the chamber')), v.description('null until committed')),
  committedAt: v.pipe(v.nullable(timestamp), v.description('time of the block; null until committed')),
  committedTxHash: v.pipe(v.nullable(hash('transaction')), v.description('null until committed')),
  commitStatus: v.picklist(['open', 'pending', 'submitted', 'committed']),
});

const idea: Exact<IdeaView> = v.strictObject({
  ideaId,
  ticker: v.string(),
  name: v.string(),
  description: v.string(),
  creatorDid: did,
  tokenAddress: v.pipe(v.nullable(address), v.description('null before deployment')),
  chamberId: id,
  graduatedAt: v.pipe(v.nullable(timestamp), v.description('null before deployment')),
  slot: v.pipe(id, v.description('order of proposal in the chamber, from 1')),
  backers: v.pipe(count, v.description('members who revealed bps > 0 for it')),
  totalBps: v.pipe(count, v.description('sum of what members revealed for it')),
  deployStatus: v.picklist(['none', 'pending', 'submitted', 'deployed', 'failed']),
  deployReason: v.pipe(v.nullable(v.string()), v.description('why the deployment failed')),
});

const allocations: Exact<AllocationsView> = v.strictObject({
  chamberId: id,
  phase,
  committed: v.array(v.strictObject({ did, commitment: sentHash('as committed') })),
  revealed: v.array(v.strictObject({ did, allocations: v.array(allocation), salt: hex('as revealed') })),
  tally: v.pipe(
    v.array(v.strictObject({ ideaId, backers: count, totalBps: count })),
    v.description('one for each idea from ALLOCATE_REVEAL on; empty before'),
  ),
});

const relayer = v.strictObject({
  ok: v.exactOptional(v.boolean()),
  reason: v.exactOptional(v.pipe(v.string(), v.description('what keeps the relayer from its work'))),
  pending: v.pipe(count, v.description('transactions to be done')),
  failed: v.pipe(count, v.description('deployments that failed')),
});

const chain = v.strictObject({
  chainId: v.nullable(id),
  registryAddress: address,
  factoryAddress: address,
  rpcUrl: v.exactOptional(v.pipe(v.string(), v.description('of a development chain that the service runs itself'))),
  relayer,
});

/** By component name. */
export const answerSchemas = {
  Service: v.strictObject({ name: v.string(), version: v.string() }),
  Health: v.strictObject({
    ok: v.boolean(),
    env: v.string(),
    chain: v.exactOptional(v.pipe(v.nullable(chain), v.description('null without a chain'))),
  }),
  Did: did,
  Deadlines: deadlines,
  Account: account,
  ChamberItem: chamberItem,
  ChamberItems: v.array(chamberItem),
  Chamber: chamber,
  Allocations: allocations,
  MerklePreview: v.strictObject({
    root: hash('Merkle root over the events 1 to eventCount'),
    eventCount: id,
    asOfEventId: id,
  }),
  Idea: idea,
  Ideas: v.array(idea),
  InclusionProof: v.strictObject({
    eventId: id,
    leaf: hash('leaf of the event'),
    proof: v.pipe(v.array(hash('sibling')), v.description('siblings from the leaf up')),
    root: hash('the same as in merkle-preview'),
    eventCount: id,
  }),
  ConsistencyProof: v.strictObject({
    fromRoot: hash('root of the first `from` events'),
    toRoot: hash('root of the first `to` events'),
    proof: v.pipe(v.array(hash('node')), v.description('as in RFC 9162, 2.1.4')),
  }),
} as const;

export type AnswerName = keyof typeof answerSchemas;
