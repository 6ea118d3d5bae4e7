import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { readableSchemas } from '../../src/moves/records.ts';
import { moves } from '../../src/moves/registry.ts';
import * as sample from '../../src/moves/samples.ts';
import { missingMember } from '../../src/vocabulary/texts.ts';

const AT = '2030-01-01T12:00:00.000Z';
const TRANSACTION = { chainId: 1, nonce: 0, txHash: sample.TX_HASH, rawTransaction: sample.RAW_TRANSACTION };
const COMMITTED = { merkleRoot: sample.ROOT, eventCount: 1, txHash: sample.TX_HASH, blockNumber: 0, committedAt: AT };
const DEPLOYED = { ideaId: 'idea-1', tokenAddress: sample.TOKEN, txHash: sample.TX_HASH, graduatedAt: AT };
const REQUEST = { method: 'POST', targetUri: 'u', body: '', contentDigest: 'd', signatureInput: 'i', signature: 's' };
const SIGNED = { did: sample.ALICE, request: REQUEST };
const UNSIGNED = { did: null, request: null };

function record(type: string, payload: object, author: object) {
  return { eventId: 1, chamberId: sample.CHAMBER_ID, type, ts: AT, prev: sample.PREV, payload, ...author };
}

const RECORDS = [
  ...Object.values(moves).map(({ event, example }) => record(event, example.payload, SIGNED)),
  record('relay.commit_submitted', TRANSACTION, UNSIGNED),
  record('chamber.committed', COMMITTED, UNSIGNED),
  record('relay.deploy_submitted', { ideaId: 'idea-1', ...TRANSACTION }, UNSIGNED),
  record('idea.deployed', DEPLOYED, UNSIGNED),
  record('idea.deploy_failed', { ideaId: 'idea-1', txHash: null, reason: '' }, UNSIGNED),
];
const schemas = readableSchemas();

function isRecord(type: string, value: object): boolean {
  return v.safeParse(schemas[type] as v.GenericSchema, value).success;
}

/** Events of earlier releases lack these members. */
const ADDED_LATER = ['accountEventId', 'walletAddress', 'walletProven', 'label', 'serviceKeys'];

/** The value without each of its members in turn, and with one additional member. */
function changesOf(value: object): readonly object[] {
  const names = Object.keys(value).filter((name) => !ADDED_LATER.includes(name));
  const without = names.map((name) => Object.fromEntries(Object.entries(value).filter(([other]) => other !== name)));
  return [...without, { ...value, extra: 1 }];
}

describe('a record', () => {
  it('each event type has a record schema', () => {
    expect(Object.keys(schemas)).toEqual(RECORDS.map(({ type }) => type));
  });

  it.each(RECORDS)('a record of $type must have exactly its members', (good) => {
    expect(isRecord(good.type, good)).toBe(true);
    // What only a stub lacks, the auditor checks.
    const whole = changesOf(good.payload).filter((payload) => missingMember(good.type, payload) === undefined);
    const payloads = whole.map((payload) => ({ ...good, payload }));
    for (const bad of [...changesOf(good), ...payloads, { ...good, type: 'chamber.renamed' }]) {
      expect([bad, isRecord(good.type, bad)]).toEqual([bad, false]);
    }
  });

  it.each(Object.values(moves))('a record of $operation may lack the account event', ({ event, example }) => {
    const { accountEventId, ...payload } = example.payload;
    expect(accountEventId).toBe(2);
    expect(isRecord(event, record(event, payload, SIGNED))).toBe(true);
    expect(isRecord(event, record(event, { ...payload, accountEventId: 0 }, SIGNED))).toBe(false);
  });

  it('a record of a move may be unsigned; a record of the service has no signer', () => {
    const { event, example } = moves.join;
    expect(isRecord(event, record(event, example.payload, { ...SIGNED, request: null }))).toBe(true);
    expect(isRecord(event, record(event, example.payload, UNSIGNED))).toBe(false);
    expect(isRecord('chamber.committed', record('chamber.committed', COMMITTED, SIGNED))).toBe(false);
  });
});
