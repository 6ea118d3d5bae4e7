// The lines of a chamber's log as schemas, one for each type of event. Their types are those of the event record.
import * as v from 'valibot';
import { moveOfEvent } from '../moves/registry.ts';
import type { ChamberEvent, EventType, ForumEvent, MovePayloads } from '../vocabulary/events.ts';
import { address, count, did, hash, hex, id, ideaId, timestamp } from '../vocabulary/schemas.ts';

type ChamberEventType = ChamberEvent['type'];
type PayloadSchemas = {
  readonly [Type in ChamberEventType]: v.GenericSchema<Extract<ChamberEvent, { readonly type: Type }>['payload']>;
};

const transaction = {
  chainId: id,
  nonce: count,
  txHash: hash('of the signed transaction'),
  rawTransaction: hex('the signed transaction'),
};

const movePayloads = Object.fromEntries(
  Object.entries(moveOfEvent).map(([type, { payload }]) => [type, payload]),
) as unknown as Pick<PayloadSchemas, keyof MovePayloads>;

const payloads: PayloadSchemas = {
  ...movePayloads,
  'relay.commit_submitted': v.strictObject(transaction),
  'chamber.committed': v.strictObject({
    merkleRoot: hash('root over events 1 to eventCount'),
    eventCount: id,
    txHash: hash('transaction of commitChamber'),
    blockNumber: count,
    committedAt: timestamp,
  }),
  'relay.deploy_submitted': v.strictObject({ ideaId, ...transaction }),
  'idea.deployed': v.strictObject({
    ideaId,
    tokenAddress: address,
    txHash: hash('transaction of deployIdea'),
    graduatedAt: timestamp,
  }),
  'idea.deploy_failed': v.strictObject({
    ideaId,
    txHash: v.nullable(hash('transaction, where one was mined')),
    reason: v.string(),
  }),
};

const evidence = v.pipe(
  v.strictObject({
    method: v.string(),
    targetUri: v.string(),
    body: v.pipe(v.string(), v.description('the raw text, empty for a request without a body')),
    contentDigest: v.string(),
    signatureInput: v.string(),
    signature: v.string(),
  }),
  v.description('the signed request, exactly as received'),
);

const SERVICE_TYPES: ReadonlySet<EventType> = new Set<EventType>([
  'relay.commit_submitted',
  'chamber.committed',
  'relay.deploy_submitted',
  'idea.deployed',
  'idea.deploy_failed',
]);

/** The schema of each type of chamber event: what a line of a stream, a page or an export parses to. */
export const eventSchemas = Object.fromEntries(
  Object.entries(payloads).map(([type, payload]) => [type, eventSchema(type as ChamberEventType, payload)]),
) as unknown as { readonly [Type in ChamberEventType]: v.GenericSchema<Extract<ForumEvent, { readonly type: Type }>> };

function eventSchema(type: ChamberEventType, payload: v.GenericSchema) {
  const isService = SERVICE_TYPES.has(type);
  return v.strictObject({
    eventId: v.pipe(id, v.description('1, 2, 3 … within the chamber, without gaps')),
    chamberId: id,
    type: v.literal(type),
    did: isService ? v.null() : did,
    ts: v.pipe(timestamp, v.description("the service's clock when it decided; never falls within a log")),
    prev: hash('leaf hash of the event before it, zeros for the first'),
    payload,
    request: isService ? v.null() : v.pipe(v.nullable(evidence), v.description('null in development mode only')),
  });
}
