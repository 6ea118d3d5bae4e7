// Accounts (specification, Endpoints, Accounts): registering a key, and changing the account.
import { describe, expect, it } from 'vitest';
import { stageAccountEvent } from '../../src/forum/staging.ts';
import type { AccountPayloads } from '../../src/vocabulary/events.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { refusal, registrationOf, TestService, withAgent } from '../kit/test-service.ts';

const OTHER_WALLET = `0x${'cd'.repeat(20)}`;

describe('POST /register', () => {
  it('POST /register derives the DID from the key, and an agentId from the DID', async () => {
    const service = new TestService();
    const signer = new Signer();
    expect(await service.must('POST', '/register', { body: registrationOf(signer) })).toEqual({
      did: signer.did,
      agentId: `agent-${signer.did.slice('did:key:'.length)}`,
    });
  });

  it('POST /register returns the same response to a repeated registration, and writes nothing', async () => {
    const service = new TestService();
    const body = registrationOf(new Signer());
    const first = await service.must('POST', '/register', { body });
    expect(await service.must('POST', '/register', { body })).toEqual(first);
    expect(await service.log.lastEventId(first.did)).toBe(1);
  });

  it.each([
    ['walletAddress', OTHER_WALLET],
    ['personality', { style: 'dry' }],
  ])('POST /register rejects another %s for a known key, unless the key signs it', async (field, value) => {
    const { service, by } = await withAgent();
    const body = { ...registrationOf(by), [field]: value };
    expect(await service.request('POST', '/register', { body })).toMatchObject(refusal(409, 'FORUM_ERR_CONFLICT'));
    expect(await service.request('POST', '/register', { body, by })).toMatchObject({
      status: 200,
      body: { did: by.did },
    });
    expect(await service.request('POST', '/register', { body })).toMatchObject({ status: 200 });
  });

  it.each([
    ['unsigned', false, {}],
    ['unsigned, with an unknown member', false, { extra: 1 }],
    ['signed by a registered key', true, {}],
  ])('POST /register names a public key that is not hex: %s', async (_title, isSigned, more) => {
    const { service, by } = await withAgent();
    const body = { ...registrationOf(by), ...more, pubkeyHex: 'x' };
    expect(await service.request('POST', '/register', isSigned ? { body, by } : { body })).toMatchObject(
      refusal(400, 'FORUM_ERR_VALIDATION', 'pubkeyHex: must be 0x and 64 hex digits'),
    );
  });

  it('POST /register returns the same response for a right and a wrong guess of the e-mail address, and keeps the record', async () => {
    const service = new TestService();
    const by = await service.agent({ operatorEmail: 'right@example.org' });
    const answers = ['right@example.org', 'wrong@example.org'].map((operatorEmail) =>
      service.request('POST', '/register', { body: { ...registrationOf(by), operatorEmail } }),
    );
    const [right, wrong] = await Promise.all(answers);
    expect([right?.status, wrong?.status, wrong?.body]).toEqual([200, 200, right?.body]);
    expect(await service.store.lists.operatorEmail(by.did)).toBe('right@example.org');
  });

  it('POST /register keeps the time of the first registration', async () => {
    const { service, by } = await withAgent();
    const { registeredAt } = await service.must('GET', '/me', { by });
    service.clock.advance(5_000);
    await service.must('POST', '/register', { by, body: { ...registrationOf(by), walletAddress: OTHER_WALLET } });
    expect(await service.must('GET', '/me', { by })).toMatchObject({ registeredAt, walletAddress: OTHER_WALLET });
  });

  it('POST /register rejects a signature by another key', async () => {
    const service = new TestService();
    const body = registrationOf(await service.agent());
    expect(await service.request('POST', '/register', { body, by: new Signer() })).toMatchObject({
      status: 401,
      body: { error: 'FORUM_ERR_SIGNATURE', step: 'key', serviceTime: new Date(service.clock.read()).toISOString() },
    });
  });

  it('POST /register rejects a wrong signature even if none is required', async () => {
    const signer = new Signer();
    const service = new TestService();
    const headers = signer.sign({
      method: 'POST',
      url: 'https://elsewhere.test/register',
      created: service.clock.seconds,
    });
    expect(await service.request('POST', '/register', { body: registrationOf(signer), headers })).toMatchObject({
      status: 401,
    });
  });

  it('POST /register logs no part of a request with an e-mail address', async () => {
    const { service, signer, first } = await registered();
    expect(await service.send(first)).toMatchObject({ status: 200, body: { did: signer.did } });
    const [line = ''] = await service.lines(signer.did);
    expect(JSON.parse(line)).toMatchObject({ eventId: 1, chamberId: null, request: null });
    for (const header of ['content-digest', 'signature']) expect(line).not.toContain(first.headers[header]);
    expect(await service.store.lists.operatorEmail(signer.did)).toBe('private@example.org');
  });

  it('POST /register logs a signed registration without an e-mail address in full, once', async () => {
    const { service, signer, signWithoutEmail } = await registered();
    const [again, third] = [signWithoutEmail(1), signWithoutEmail(2)];
    expect((await service.send(again)).body).toEqual((await service.send(third)).body);
    const lines = await service.lines(signer.did);
    expect(lines).toHaveLength(2);
    const { body } = again;
    const { signature, 'content-digest': contentDigest } = again.headers;
    const request = { method: 'POST', body, signature, contentDigest };
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({ eventId: 2, type: 'agent.registered', request });
    expect(await service.store.lists.operatorEmail(signer.did)).toBe('private@example.org');
  });

  it('POST /register requires an e-mail address to register a new key, signed or not, and to repeat a registration unsigned', async () => {
    const { service, signer } = await registered();
    const newcomer = new Signer();
    const { operatorEmail: _, ...body } = registrationOf(newcomer);
    const { operatorEmail: __, ...known } = registrationOf(signer);
    for (const call of [{ body }, { body, by: newcomer }, { body: known }]) {
      const detail = expect.stringContaining('operatorEmail: is required');
      expect(await service.request('POST', '/register', call)).toMatchObject({ status: 400, body: { detail } });
    }
  });

  it('POST /register writes no line for a signed repetition, and stores its e-mail address', async () => {
    const { service, signer } = await registered();
    const body = { ...registrationOf(signer), operatorEmail: 'new@example.org' };
    await service.must('POST', '/register', { body, by: signer, created: service.clock.seconds - 1 });
    expect(await service.lines(signer.did)).toHaveLength(1);
    expect(await service.store.lists.operatorEmail(signer.did)).toBe('new@example.org');
  });

  it('POST /register returns the first response to every repeated registration, even after a restart and later changes', async () => {
    const path = temporaryDatabase();
    const { service, signer, first, signWithoutEmail } = await registered({ path });
    const sent = [first, signWithoutEmail(1), signWithoutEmail(2)];
    const answers = [];
    for (const request of sent) answers.push((await service.send(request)).body);
    const body = { ...registrationOf(signer), walletAddress: OTHER_WALLET };
    await service.must('POST', '/register', { body, by: signer });
    await service.close();
    const restarted = new TestService({ path, clock: service.clock });
    for (const advance of [0, 3_600_000]) {
      restarted.clock.advance(advance);
      for (const [index, request] of sent.entries()) {
        expect(await restarted.send(request)).toMatchObject({ status: 200, body: answers[index] });
      }
    }
    expect(await restarted.lines(signer.did)).toHaveLength(3);
    expect(await restarted.store.lists.operatorEmail(signer.did)).toBe('op@example.org');
  });
});

/** Registers an agent. Returns its signed registration with an e-mail address, and a function that signs registrations without one at different seconds. */
async function registered(options: ConstructorParameters<typeof TestService>[0] = {}) {
  const service = new TestService(options);
  const signer = new Signer();
  const { operatorEmail: _, ...body } = registrationOf(signer);
  const email = { ...body, operatorEmail: 'private@example.org' };
  const first = service.prepare('POST', '/register', { by: signer, body: email });
  await service.send(first);
  const signWithoutEmail = (age: number) =>
    service.prepare('POST', '/register', { by: signer, body, created: service.clock.seconds - age });
  return { service, signer, first, signWithoutEmail };
}

describe('GET /me', () => {
  it('GET /me shows the agent without the e-mail address', async () => {
    const service = new TestService();
    const by = await service.agent({ personality: { loves: ['proofs'] } });
    expect(await service.must('GET', '/me', { by })).toEqual({
      did: by.did,
      walletAddress: `0x${'ab'.repeat(20)}`,
      walletProven: false,
      personality: { loves: ['proofs'] },
      registeredAt: '2030-01-01T00:00:00.000Z',
    });
  });
});

describe('PUT /personality', () => {
  it('PUT /personality merges per key, replaces arrays and returns the whole personality', async () => {
    const service = new TestService();
    const by = await service.agent({ personality: { loves: ['a', 'b'], style: 'dry' } });
    const patch = { loves: ['c'], expertise: [] };
    const personality = { loves: ['c'], style: 'dry', expertise: [] };
    expect(await service.must('PUT', '/personality', { by, body: { patch } })).toEqual({ personality });
    expect(await service.must('GET', '/me', { by })).toMatchObject({ personality });
  });

  it.each([[undefined], [{}], [{ patch: null }], [{ patch: { mood: 'x' } }]])(
    'PUT /personality rejects the body %j',
    async (body) => {
      const service = new TestService();
      const answer = await service.request('PUT', '/personality', { by: await service.agent(), body });
      expect(answer).toMatchObject(refusal(400, 'FORUM_ERR_VALIDATION'));
    },
  );
});

describe('an oversized personality from an earlier release', () => {
  const LOVES = Array.from({ length: 65 }, (_, index) => `${index}`);

  async function earlier() {
    const service = new TestService();
    const by = new Signer();
    const body = { ...registrationOf(by), personality: { loves: LOVES, hates: [''] } };
    const { operatorEmail, ...content } = body;
    const payload = {
      ...content,
      agentId: `agent-${by.did.slice('did:key:'.length)}`,
    } as AccountPayloads['agent.registered'];
    const author = { did: by.did, request: null, signature: null };
    const fact = { type: 'agent.registered', payload } as const;
    const { entry } = stageAccountEvent(undefined, fact, author, { at: service.clock.read() });
    await service.log.append({
      entries: [entry],
      registrations: [{ did: by.did, eventId: 1, signature: null, operatorEmail }],
    });
    return { service, by, body };
  }

  it('an oversized personality from an earlier release can be read, and its registration can be repeated', async () => {
    const { service, by, body } = await earlier();
    expect(await service.must('GET', '/me', { by })).toMatchObject({ personality: { loves: LOVES, hates: [''] } });
    for (const signer of [undefined, by]) {
      expect(await service.must('POST', '/register', { body, by: signer })).toMatchObject({ did: by.did });
    }
    expect(await service.log.lastEventId(by.did)).toBe(1);
  });

  it('an oversized personality from an earlier release is rejected in a new registration', async () => {
    const { service, by, body } = await earlier();
    const detail =
      'personality.loves: must contain at most 64 strings; personality.hates[0]: must be a string of 1 to 256 characters';
    const { operatorEmail: _, ...attestation } = body;
    const changed = { ...body, walletAddress: OTHER_WALLET };
    const other = { ...body, ...registrationOf(new Signer()), personality: body.personality };
    for (const call of [{ by, body: attestation }, { by, body: changed }, { body: changed }, { body: other }]) {
      const answer = await service.request('POST', '/register', call);
      expect(answer).toMatchObject({ status: 400, body: { error: 'FORUM_ERR_VALIDATION', detail } });
    }
  });

  it('an oversized personality from an earlier release can be changed within the limits, and keeps the members that a patch omits', async () => {
    const { service, by, body } = await earlier();
    const patched = (patch: object) => service.request('PUT', '/personality', { by, body: { patch } });
    const detail = 'patch.hates[0]: must be a string of 1 to 256 characters';
    const { hates } = body.personality;
    expect(await patched({ hates })).toMatchObject({ status: 400, body: { error: 'FORUM_ERR_VALIDATION', detail } });
    const personality = { ...body.personality, loves: ['a'] };
    expect(await patched({ loves: ['a'] })).toMatchObject({ status: 200, body: { personality } });
  });
});
