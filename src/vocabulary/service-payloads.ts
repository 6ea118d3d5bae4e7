// The payloads of the service's own events, which it writes after the reveal deadline, outside the Merkle tree. Their schemas
// stay as wide as everything that an earlier release wrote.
import * as v from 'valibot';
import { address, count, hash, hex, id, ideaId, timestamp } from './schemas.ts';

const transaction = {
  chainId: id,
  nonce: count,
  txHash: hash('of the signed transaction'),
  rawTransaction: hex('the signed transaction'),
};

export const servicePayloads = {
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

type Schemas = typeof servicePayloads;
export type ServicePayloads = { readonly [Type in keyof Schemas]: Readonly<v.InferOutput<Schemas[Type]>> };
export type RelayTransaction = ServicePayloads['relay.commit_submitted'];
