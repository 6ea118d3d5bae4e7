// Key retirement: POST /me/retire by the key's holder, POST /agents/:did/retire by a wallet that was once proven for the key.
import { describe, expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { PUBLIC_URL, registrationOf, TestService, withAgent, withTwoAgents } from '../kit/test-service.ts';
import { agentWith, proofBy, provenRegistration, retirementBy, walletOf } from '../kit/wallets.ts';

const [WALLET, OTHER, STRANGER] = [walletOf(0), walletOf(1), walletOf(2)];

const nowOf = (service: TestService) => new Date(service.clock.read()).toISOString();
const by = (wallet: typeof WALLET, agent: Signer, service: TestService) =>
  retirementBy(wallet, agent.did, { issuedAt: nowOf(service) });
const RETIRED = { status: 403, body: { error: 'FORUM_ERR_RETIRED' } };
const TWICE = { status: 409, body: { error: 'FORUM_ERR_CONFLICT' } };

async function lastEvent(service: TestService, { did }: Signer) {
  return (await service.events(did)).at(-1);
}

describe('a key can be retired', () => {
  it('a key can be retired by itself, with its request as evidence', async () => {
    const { service, by: ann } = await withAgent();
    expect(await service.must('POST', '/me/retire', { by: ann, body: {} })).toEqual({ eventId: 2 });
    expect(await lastEvent(service, ann)).toMatchObject({
      eventId: 2,
      type: 'agent.retired',
      payload: { by: 'key' },
      request: { targetUri: `${PUBLIC_URL}/me/retire`, body: '{}' },
    });
  });

  it('a key can be retired by its wallet, with the signature of the wallet as evidence', async () => {
    const service = new TestService();
    const ann = await agentWith(service, WALLET);
    const body = await by(WALLET, ann, service);
    expect(await service.must('POST', `/agents/${ann.did}/retire`, { body })).toEqual({ eventId: 3 });
    const { walletAddress, walletSignature: signature, issuedAt } = body;
    expect(await lastEvent(service, ann)).toMatchObject({
      type: 'agent.retired',
      payload: { by: 'wallet', walletAddress, walletProof: { signature, issuedAt, service: PUBLIC_URL } },
      request: null,
    });
  });

  it('a key can be retired by its first wallet, even after a thief has bound the key to another wallet', async () => {
    const service = new TestService();
    const ann = await agentWith(service, WALLET);
    service.clock.advance(1_000);
    await service.must('POST', '/register', { by: ann, body: await provenRegistration(service, ann, OTHER) });
    const path = `/agents/${ann.did}/retire`;
    expect(await service.request('POST', path, { body: await by(STRANGER, ann, service) })).toMatchObject({
      status: 400,
    });
    await service.must('POST', path, { body: await by(WALLET, ann, service) });
    expect(await service.request('POST', '/me/retire', { by: ann, body: {} })).toMatchObject(TWICE);
  });

  it('a retired key is shown as retired, with its wallet and personality unchanged', async () => {
    const service = new TestService();
    const ann = await agentWith(service, WALLET);
    const before = await service.must('GET', '/me', { by: ann });
    const retiredAt = nowOf(service);
    await service.must('POST', '/me/retire', { by: ann });
    service.clock.advance(1_000);
    expect(await service.must('GET', '/me', { by: ann })).toEqual({ ...before, retiredAt });
    expect(await service.must('GET', `/agents/${ann.did}`)).toMatchObject({ walletProven: true, retiredAt });
  });
});

describe('a repeated retirement', () => {
  it('a repeated retirement gets the first response for the same request, and 409 for a different one', async () => {
    const service = new TestService();
    const ann = await agentWith(service, WALLET);
    const request = service.prepare('POST', '/me/retire', { by: ann, body: {} });
    const first = await service.send(request);
    service.clock.advance(86_400_000);
    expect((await service.send(request)).body).toEqual(first.body);
    expect(await service.request('POST', '/me/retire', { by: ann, body: {} })).toMatchObject(TWICE);
    const body = await by(WALLET, ann, service);
    expect(await service.request('POST', `/agents/${ann.did}/retire`, { body })).toMatchObject(TWICE);
  });

  it('a repeated retirement by the wallet also gets the first response, or 409', async () => {
    const service = new TestService();
    const ann = await agentWith(service, WALLET);
    const path = `/agents/${ann.did}/retire`;
    const body = await by(WALLET, ann, service);
    const [first, second] = await Promise.all([body, body].map((sent) => service.must('POST', path, { body: sent })));
    expect([first, second]).toEqual([{ eventId: 3 }, { eventId: 3 }]);
    service.clock.advance(86_400_000);
    expect(await service.must('POST', path, { body })).toEqual(first);
    expect(await service.request('POST', path, { body: await by(WALLET, ann, service) })).toMatchObject(TWICE);
    expect(await service.log.lastEventId(ann.did)).toBe(3);
  });
});

describe('after a retirement', () => {
  it('every new command of the key is rejected, and retries keep their responses', async () => {
    const service = new TestService();
    const [ann, bob] = [await agentWith(service, WALLET), await service.agent()];
    const lobby = await openChamber(service, [ann, bob]);
    const chamberId = await openChamber(service, [ann, bob], { turnSeconds: 60 });
    await enterPhase(service, chamberId, 'PROPOSAL');
    const idea = { name: 'N', ticker: 'T' };
    const proposal = service.prepare('POST', `/chambers/${chamberId}/propose`, { by: ann, body: idea });
    const registration = service.prepare('POST', '/register', {
      by: ann,
      body: await provenRegistration(service, ann, OTHER),
    });
    const answers = [await service.send(proposal), await service.send(registration)];
    await service.must('POST', '/me/retire', { by: ann });
    service.clock.advance(1_000);
    const { operatorEmail: _, ...content } = registrationOf(ann);
    for (const [method, path, body] of [
      ['POST', '/register', content],
      ['POST', '/register', registrationOf(ann)],
      ['POST', '/register', await provenRegistration(service, ann, WALLET)],
      ['PUT', '/personality', { patch: { style: 'dry' } }],
      ['POST', '/chambers', { name: 'x' }],
      ['POST', `/chambers/${lobby}/join`, {}],
      ['POST', `/chambers/${chamberId}/propose`, { ...idea, ticker: 'U' }],
      ['POST', `/chambers/${chamberId}/pass`, {}],
      ['POST', `/chambers/${chamberId}/debate`, { comment: 'x' }],
      ['POST', `/chambers/${chamberId}/allocate/commit`, {}],
      ['POST', '/chambers/999/join', {}],
    ] as const) {
      expect([path, await service.request(method, path, { by: ann, body })]).toMatchObject([path, RETIRED]);
    }
    expect([(await service.send(proposal)).body, (await service.send(registration)).body]).toEqual(
      answers.map(({ body }) => body),
    );
  });

  it('an unsigned registration is a retry if it changes nothing, and rejected otherwise', async () => {
    const service = new TestService();
    const ann = new Signer();
    const first = await service.must('POST', '/register', { body: registrationOf(ann) });
    await service.must('POST', '/me/retire', { by: ann });
    expect(await service.must('POST', '/register', { body: registrationOf(ann) })).toEqual(first);
    const body = { ...registrationOf(ann), personality: { style: 'dry' } };
    expect(await service.request('POST', '/register', { body })).toMatchObject(RETIRED);
  });

  it('the retirement is checked after the ban list, and before the age of the signature', async () => {
    const { service, by: ann } = await withAgent();
    await service.must('POST', '/me/retire', { by: ann });
    const created = service.clock.seconds - 1_000;
    expect(await service.request('POST', '/chambers/1/join', { by: ann, created })).toMatchObject(RETIRED);
  });

  it('the key’s seats remain, and its turns expire', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const chamberId = await openChamber(service, [ann, bob], { turnSeconds: 60 });
    await enterPhase(service, chamberId, 'PROPOSAL');
    await service.must('POST', '/me/retire', { by: ann });
    const read = () => service.must('GET', `/chambers/${chamberId}`);
    expect((await read()).currentTurnAgent).toBe(ann.did);
    service.clock.advance(60_000);
    expect(await read()).toMatchObject({ currentTurnAgent: bob.did, members: [ann.did, bob.did] });
  });

  it('the todo list has nothing left to do', async () => {
    const { service, by: ann } = await withAgent();
    const chamberId = await openChamber(service, [ann], { turnSeconds: 60 });
    await openChamber(service, [], { rounds: { proposal: 1, debate: 1 }, turnSeconds: 60 });
    await enterPhase(service, chamberId, 'PROPOSAL');
    const [item] = (await service.must('GET', '/me/todo', { by: ann })).todo;
    expect(item).toMatchObject({ must: 'pass', may: ['propose'] });
    await service.must('POST', '/me/retire', { by: ann });
    const [after] = (await service.must('GET', '/me/todo', { by: ann })).todo;
    expect(after).toMatchObject({ must: 'wait', may: [], why: "Your key was retired: it can't make moves any more." });
  });
});

describe('a wallet may not', () => {
  it('a wallet may not retire an unknown key, a key for which it was never proven, or any key without its own fresh signature', async () => {
    const service = new TestService();
    const [ann, bob] = [await agentWith(service, WALLET), await agentWith(service, OTHER)];
    const right = await by(WALLET, ann, service);
    const path = `/agents/${ann.did}/retire`;
    const text = (issuedAt: string) =>
      `Chamber Coordination Service key retirement\nagent: ${ann.did}\nservice: ${PUBLIC_URL}\nissued: ${issuedAt}`;
    const old = new Date(service.clock.read() - 301_000).toISOString();
    for (const [body, problem] of [
      [await by(OTHER, ann, service), `is by ${OTHER.address}, which was never proven for ${ann.did}`],
      [{ ...right, walletAddress: OTHER.address }, 'which was never proven'],
      [{ ...(await by(OTHER, ann, service)), walletAddress: WALLET.address }, `is not by ${WALLET.address}`],
      [{ ...(await by(WALLET, bob, service)) }, `is not by ${WALLET.address}`],
      [{ ...right, ...(await proofBy(WALLET, ann.did, { issuedAt: right.issuedAt })) }, `is not by ${WALLET.address}`],
      [await retirementBy(WALLET, ann.did, { issuedAt: right.issuedAt, service: 'https://evil.test' }), 'is not by'],
      [await retirementBy(WALLET, ann.did, { issuedAt: old }), 'issuedAt is 301 s old'],
    ] as const) {
      const { status, body: answer } = await service.request('POST', path, { body });
      expect([status, answer.detail]).toEqual([400, expect.stringContaining(problem)]);
      expect(answer.detail).toContain(text(body.issuedAt));
    }
    const unknown = `/agents/${new Signer().did}/retire`;
    expect(await service.request('POST', unknown, { body: right })).toMatchObject({ status: 404 });
    expect(await service.request('POST', path, { body: {} })).toMatchObject({ status: 400 });
    expect(await service.log.lastEventId(ann.did)).toBe(2);
  });
});
