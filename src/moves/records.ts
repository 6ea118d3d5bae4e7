// The schemas of all event records of a chamber. The published event schemas and the auditor's checks are built from them, so they must
// accept everything that earlier releases wrote.
import * as v from 'valibot';
import { address, count, described, did, hash, id, ideaId, timestamp } from '../vocabulary/schemas.ts';
import type { ServicePayloads } from '../vocabulary/service-payloads.ts';
import { WITHHELD_FORMS, WITHHOLD_REASONS, type Withheld } from '../vocabulary/withheld.ts';
import { changePersonality } from './change-personality.ts';
import type { Move } from './move.ts';
import { register } from './register.ts';
import { moves } from './registry.ts';
import { retire } from './retire.ts';

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
/** The form of the headers of a verified signature. Other labels may accompany sig1, separated by commas. */
const verifiedEvidence = v.pipe(
  v.strictObject({
    ...evidence.pipe[0].entries,
    method: v.literal('POST'),
    targetUri: v.pipe(v.string(), v.regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#@\\]+\/[^\s#\\]*$/)),
    contentDigest: v.pipe(v.string(), v.regex(/sha-256=:[A-Za-z0-9+/]{43}=:/)),
    signatureInput: v.pipe(v.string(), v.regex(/(?:^ *|,[ \t]*)sig1=\(/)),
    signature: v.pipe(v.string(), v.regex(/(?:^ *|,[ \t]*)sig1=:[A-Za-z0-9+/]{85}[AQgw]==:(?: *$|[ \t]*,)/)),
  }),
  v.description('the signed request, exactly as received'),
);
const request = (signed: v.GenericSchema) => v.pipe(v.nullable(signed), v.description('null only in development mode'));

const form = (pattern: RegExp) => v.pipe(v.string(), v.regex(pattern));
const withheld: v.GenericSchema<Withheld> = v.pipe(
  v.strictObject({
    at: timestamp,
    key: form(WITHHELD_FORMS.key),
    keyid: form(WITHHELD_FORMS.keyid),
    leaf: hash('leaf of the original line'),
    log: form(WITHHELD_FORMS.log),
    reason: v.picklist(WITHHOLD_REASONS),
    signature: form(WITHHELD_FORMS.signature),
  }),
  v.description('only in a stub, which replaces the line of an event whose texts the service has withheld'),
);

const transaction = {
  chainId: id,
  nonce: count,
  txHash: hash('of the signed transaction'),
  rawTransaction: described(/^0x([0-9a-f]{2})+$/, 'the signed transaction'),
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
  'relay.deploy_submitted': v.strictObject({
    ideaId,
    ...transaction,
    rawTransaction: v.exactOptional(v.pipe(transaction.rawTransaction, v.description('absent only in a stub'))),
  }),
  'idea.deployed': v.strictObject({
    ideaId,
    tokenAddress: address,
    txHash: hash('transaction of deployIdea'),
    graduatedAt: timestamp,
  }),
  'idea.deploy_failed': v.strictObject({
    ideaId,
    txHash: v.nullable(hash('transaction; null if none was mined')),
    reason: v.string(),
  }),
};

/** Returns the schemas by type, for records as this release writes them. */
export const publishedSchemas = (): Schemas => recordSchemas(did, verifiedEvidence);

/** Returns the schemas by type, accepting any signer and evidence, because separate checks verify these. */
export const readableSchemas = (): Schemas => recordSchemas(v.string(), evidence);

type Schemas = Readonly<Record<string, v.GenericSchema>>;

function recordSchemas(did: v.GenericSchema<string>, evidence: v.GenericSchema): Schemas {
  const author = { did, request: request(evidence) };
  const signed = Object.values(moves).map((move: Move) => recordOf(move.event, move.payload, author));
  const unsigned = Object.entries(servicePayloads).map(([type, payload]) =>
    recordOf(type, payload, { did: v.null(), request: v.null() }),
  );
  return Object.fromEntries([...signed, ...unsigned]);
}

/** The schemas of account events, by type. The body may be null in lines of earlier releases. */
export const accountRecordSchemas: Readonly<Record<string, v.GenericSchema>> = Object.fromEntries(
  [register, changePersonality, retire].map(({ event, payload }) => {
    const request = v.nullable(v.strictObject({ ...evidence.pipe[0].entries, body: v.nullable(v.string()) }));
    const [type, record] = recordOf(event, payload, { did, request });
    return [type, v.strictObject({ ...record.entries, chamberId: v.null() })];
  }),
);

function recordOf(type: string, payload: v.GenericSchema, author: Record<'did' | 'request', v.GenericSchema>) {
  const record = v.strictObject({
    eventId: v.pipe(id, v.description('1, 2, 3 … within its stream (a chamber, or an account), without gaps')),
    chamberId: id,
    type: v.literal(type),
    did: author.did,
    ts: v.pipe(timestamp, v.description("the service's time of the decision; never decreases within a stream")),
    prev: hash('leaf hash of the event before it, zeros for the first'),
    payload,
    request: author.request,
    withheld: v.exactOptional(withheld),
  });
  return [type, record] as const;
}
