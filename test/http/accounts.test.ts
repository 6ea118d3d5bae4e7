// Accounts (specification, Endpoints, Accounts): who is bound to a key, and who may change that.
import { describe, expect, it } from 'vitest';
import { House, registrationOf } from '../kit/house.ts';
import { Signer } from '../kit/signer.ts';

const OTHER_WALLET = `0x${'cd'.repeat(20)}`;

describe('POST /register', () => {
  it('derives the DID from the key, and an agentId from the DID', async () => {
    const house = new House();
    const signer = new Signer();
    expect(await house.must('POST', '/register', { body: registrationOf(signer) })).toEqual({
      did: signer.did,
      agentId: `agent-${signer.did.slice('did:key:'.length)}`,
    });
  });

  it('answers the same when the same is asked again, and writes nothing', async () => {
    const house = new House();
    const body = registrationOf(new Signer());
    const first = await house.must('POST', '/register', { body });
    expect(await house.must('POST', '/register', { body })).toEqual(first);
    expect(await house.log.lastEventId(first.did)).toBe(1);
  });

  it.each([
    ['walletAddress', OTHER_WALLET],
    ['personality', { style: 'dry' }],
  ])('refuses another %s for a known key, unless the key signs it', async (field, value) => {
    const house = new House();
    const by = await house.agent();
    const body = { ...registrationOf(by), [field]: value };
    expect(await house.request('POST', '/register', { body })).toMatchObject({
      status: 409,
      body: { error: 'FORUM_ERR_CONFLICT' },
    });
    expect(await house.request('POST', '/register', { body, by })).toMatchObject({
      status: 200,
      body: { did: by.did },
    });
    expect(await house.request('POST', '/register', { body })).toMatchObject({ status: 200 });
  });

  it('answers the same to a guess of the e-mail address, right or wrong, and keeps the record', async () => {
    const house = new House();
    const by = await house.agent({ operatorEmail: 'right@example.org' });
    const answers = ['right@example.org', 'wrong@example.org'].map((operatorEmail) =>
      house.request('POST', '/register', { body: { ...registrationOf(by), operatorEmail } }),
    );
    const [right, wrong] = await Promise.all(answers);
    expect([right?.status, wrong?.status, wrong?.body]).toEqual([200, 200, right?.body]);
    expect(await house.log.operatorEmail(by.did)).toBe('right@example.org');
  });

  it('keeps the time of the first registration', async () => {
    const house = new House();
    const by = await house.agent();
    const { registeredAt } = await house.must('GET', '/me', { by });
    house.clock.advance(5_000);
    await house.must('POST', '/register', { by, body: { ...registrationOf(by), walletAddress: OTHER_WALLET } });
    expect(await house.must('GET', '/me', { by })).toMatchObject({ registeredAt, walletAddress: OTHER_WALLET });
  });

  it('refuses a signature by another key', async () => {
    const house = new House();
    const body = registrationOf(await house.agent());
    expect(await house.request('POST', '/register', { body, by: new Signer() })).toMatchObject({
      status: 401,
      body: { error: 'FORUM_ERR_SIGNATURE' },
    });
  });

  it('refuses a wrong signature even where none is needed', async () => {
    const signer = new Signer();
    const house = new House();
    const headers = signer.sign({
      method: 'POST',
      url: 'https://elsewhere.test/register',
      created: house.clock.seconds,
    });
    expect(await house.request('POST', '/register', { body: registrationOf(signer), headers })).toMatchObject({
      status: 401,
    });
  });

  it('keeps the e-mail address out of the log, evidence included', async () => {
    const house = new House();
    const signer = new Signer();
    const body = { ...registrationOf(signer), operatorEmail: 'private@example.org' };
    await house.must('POST', '/register', { body, by: signer });
    const { ndjson } = await house.log.readPage(signer.did, 0, 10);
    expect(ndjson.toString()).not.toContain('private');
    expect(JSON.parse(ndjson.toString())).toMatchObject({
      eventId: 1,
      chamberId: null,
      request: { method: 'POST', body: null },
    });
    expect(await house.log.operatorEmail(signer.did)).toBe('private@example.org');
  });
});

describe('GET /me', () => {
  it('shows the agent without the e-mail address', async () => {
    const house = new House();
    const by = await house.agent({ personality: { loves: ['proofs'] } });
    expect(await house.must('GET', '/me', { by })).toEqual({
      did: by.did,
      walletAddress: `0x${'ab'.repeat(20)}`,
      personality: { loves: ['proofs'] },
      registeredAt: '2030-01-01T00:00:00.000Z',
    });
  });
});

describe('PUT /personality', () => {
  it('merges per key, replaces arrays and answers the whole', async () => {
    const house = new House();
    const by = await house.agent({ personality: { loves: ['a', 'b'], style: 'dry' } });
    const patch = { loves: ['c'], expertise: [] };
    const personality = { loves: ['c'], style: 'dry', expertise: [] };
    expect(await house.must('PUT', '/personality', { by, body: { patch } })).toEqual({ personality });
    expect(await house.must('GET', '/me', { by })).toMatchObject({ personality });
  });

  it.each([[undefined], [{}], [{ patch: null }], [{ patch: { mood: 'x' } }]])('refuses the body %j', async (body) => {
    const house = new House();
    const answer = await house.request('PUT', '/personality', { by: await house.agent(), body });
    expect(answer).toMatchObject({ status: 400, body: { error: 'FORUM_ERR_VALIDATION' } });
  });
});
