// The schema of every event record of a chamber: the published event schemas and the auditor's check are both made from it.
// They stay as wide as everything that an earlier release wrote.
import * as v from 'valibot';
import { address, count, did, hash, hex, id, ideaId, timestamp } from '../vocabulary/schemas.ts';
import type { ServicePayloads } from '../vocabulary/service-payloads.ts';
import { changePersonality } from './change-personality.ts';
import type { Move } from './move.ts';
import { register } from './register.ts';
import { moves } from './registry.ts';

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
const request = v.pipe(v.nullable(evidence), v.description('null in development mode only'));

const transaction = {
  chainId: id,
  nonce: count,
  txHash: hash('of the signed transaction'),
  rawTransaction: hex('the signed transaction'),
};

const servicePayloads: { readonly [Type in keyof ServicePayloads]: v.GenericSchema<ServicePayloads[Type]> } = {
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

/** By type. `did` is the schema of a signer. */
export function recordSchemas(did: v.GenericSchema<string>): Readonly<Record<string, v.GenericSchema>> {
  const signed = Object.values(moves).map((move: Move) => recordOf(move.event, move.payload, { did, request }));
  const unsigned = Object.entries(servicePayloads).map(([type, payload]) =>
    recordOf(type, payload, { did: v.null(), request: v.null() }),
  );
  return Object.fromEntries([...signed, ...unsigned]);
}

/** Of account events, by type. The body is null in lines of an earlier release. */
export const accountRecordSchemas: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries(
  [register, changePersonality].map(({ event, payload }) => {
    const request = v.nullable(v.strictObject({ ...evidence.pipe[0].entries, body: v.nullable(v.string()) }));
    const [type, record] = recordOf(event, payload, { did, request });
    return [type, v.strictObject({ ...record.entries, chamberId: v.null() })];
  }),
);

function recordOf(type: string, payload: v.GenericSchema, author: Record<'did' | 'request', v.GenericSchema>) {
  const record = v.strictObject({
    eventId: v.pipe(id, v.description('1, 2, 3 … within the chamber, without gaps')),
    chamberId: id,
    type: v.literal(type),
    did: author.did,
    ts: v.pipe(timestamp, v.description("the service's clock when it decided; never falls within a log")),
    prev: hash('leaf hash of the event before it, zeros for the first'),
    payload,
    request: author.request,
  });
  return [type, record] as const;
}
