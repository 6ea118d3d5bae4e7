// The lines of a chamber's log as schemas, one for each type of event. Their types are those of the event record.
import * as v from 'valibot';
import type { ChamberEvent, EventType, ForumEvent } from '../vocabulary/events.ts';
import { NAME_CHARS_MAX, SALT_BYTES_MAX, SALT_BYTES_MIN, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import type { JsonObject } from '../vocabulary/values.ts';
import { address, allocation, count, deadlines, did, givenHash, hash, hex, id, ideaId, timestamp } from './answers.ts';

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

const payloads: PayloadSchemas = {
  'chamber.created': v.strictObject({
    name: v.pipe(v.string(), v.maxLength(NAME_CHARS_MAX)),
    deadlines,
    minBackersForGraduation: id,
    turnSeconds: v.nullable(id),
  }),
  'chamber.joined': v.strictObject({ turnOrder: count }),
  'chamber.proposed': v.strictObject({
    ideaId,
    slot: id,
    name: v.pipe(v.string(), v.maxLength(NAME_CHARS_MAX)),
    ticker: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_.-]{1,32}$/)),
    description: v.pipe(v.string(), v.maxLength(TEXT_CHARS_MAX)),
    creatorWallet: v.pipe(address, v.description("the proposer's wallet of that moment, which counts at deployment")),
  }),
  'chamber.debated': v.strictObject({
    ideaId: v.nullable(ideaId),
    comment: v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX)),
    refinement: v.nullable(v.custom<JsonObject>(() => true)),
  }),
  'chamber.passed': v.strictObject({ nextTurnAgent: did }),
  'allocation.committed': v.strictObject({ commitment: givenHash('as sent') }),
  'allocation.revealed': v.strictObject({
    allocations: v.array(allocation),
    salt: hex(`as sent, ${SALT_BYTES_MIN} to ${SALT_BYTES_MAX} bytes`),
  }),
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
