import canonicalize from 'canonicalize';
import { describe, expect, it } from 'vitest';
import { moveOfEvent } from '../../src/moves/registry.ts';
import { type ChamberEvent, fromLine, isMove, toLine } from '../../src/vocabulary/events.ts';
import { ANN, created, joined, proposed, settled } from '../kit/brief-events.ts';
import { eventsOf } from '../kit/given.ts';

const REQUEST = {
  method: 'POST',
  targetUri: 'https://forum.example.org/chambers/7/join?a="b"',
  body: '{"text":"a \\"quote\\", ünï, \\u0000"}',
  contentDigest: 'sha-256=:AA==:',
  signatureInput: 'sig1=("@method");keyid="did:key:z6"',
  signature: 'sig1=:AA==:',
};
const EVENTS = eventsOf([created(), ...joined(ANN), proposed(ANN, 1, 'Ünï "1"'), settled]);

describe('the line of an event', () => {
  it.each([
    ['by an agent, unsigned', EVENTS[2]],
    ['signed', { ...EVENTS[1], request: REQUEST }],
    ['signed, without its body', { ...EVENTS[1], request: { ...REQUEST, body: null } }],
    ['by the service', EVENTS[3]],
    ['of an account', { ...EVENTS[1], chamberId: null }],
  ] as const)('the line of an event is its canonical JSON: %s', (_title, event) => {
    const line = toLine(event as ChamberEvent);
    expect(line).toBe(canonicalize(event));
    expect(fromLine(line)).toEqual(event);
  });
});

describe('the leaves of the Merkle tree', () => {
  it.each(Object.keys(moveOfEvent))('the leaves of the Merkle tree include %s', (type) => {
    expect(isMove({ type } as ChamberEvent)).toBe(true);
  });

  it.each([
    'relay.commit_submitted',
    'chamber.committed',
    'relay.deploy_submitted',
    'idea.deployed',
    'idea.deploy_failed',
  ])('the leaves of the Merkle tree exclude %s', (type) => {
    expect(isMove({ type } as ChamberEvent)).toBe(false);
  });
});
