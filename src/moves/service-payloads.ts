// The payload schema of each service event. The published event schemas and the auditor's record schema are made from these,
// as those of the moves are made from the slices. They stay as wide as everything that an earlier release wrote.
import * as v from 'valibot';
import type { ServicePayloads } from '../vocabulary/events.ts';
import { address, count, hash, hex, id, ideaId, timestamp } from '../vocabulary/schemas.ts';

const transaction = {
  chainId: id,
  nonce: count,
  txHash: hash('of the signed transaction'),
  rawTransaction: hex('the signed transaction'),
};

export const servicePayloads: {
  readonly [Type in keyof ServicePayloads]: v.GenericSchema<ServicePayloads[Type]>;
} = {
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
