// The admission rules of a chamber over HTTP, on a real log: from a rejection to a seat.
import { describe, expect, it } from 'vitest';
import { toDid } from '../../src/crypto/did-key.ts';
import { deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { type Prepared, refusal, registrationOf, TestService, withAgent, withTwoAgents } from '../kit/test-service.ts';
import { agentWith, provenRegistration, walletOf } from '../kit/wallets.ts';

describe('a chamber with a list of agents', () => {
  it('a chamber with a list of agents is shown with its rules; other chambers have none', async () => {
    const { service, by: ann } = await withAgent();
    const id = await openChamber(service, [ann], { admission: { dids: [ann.did] } });
    const open = await openChamber(service, [ann]);
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ admission: { dids: [ann.did] } });
    expect(await service.must('GET', `/chambers/${open}`)).toMatchObject({ admission: null });
  });

  it('a chamber with a list of agents names all unmet rules in one response, and one request by its creator admits the agent', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const id = await openChamber(service, [ann], { admission: { dids: [ann.did] } });
    const refused = await service.request('POST', `/chambers/${id}/join`, { by: bob });
    expect(refused).toMatchObject({ status: 403, body: { error: 'FORUM_ERR_ADMISSION', failedRules: ['dids'] } });
    const [, path = ''] = /POST (\/chambers\/\d+\/admit)/.exec(refused.body.detail) ?? [];
    const admission = service.prepare('POST', path, { by: ann, body: { did: bob.did } });
    expect(await service.send(admission)).toMatchObject({ status: 200, body: { eventId: 3 } });
    expect(await service.must('POST', `/chambers/${id}/join`, { by: bob })).toEqual({ ok: true, turnOrder: 1 });
    expect(await service.send(admission)).toMatchObject({ status: 200, body: { eventId: 3 } });
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ admission: { dids: [ann.did, bob.did] } });
  });

  it('a chamber with a list of agents keeps its list after a restart', async () => {
    const path = temporaryDatabase();
    const before = new TestService({ path });
    const [ann, bob] = [await before.agent(), await before.agent()];
    const later = new Signer();
    const id = await openChamber(before, [ann], { admission: { dids: [ann.did] } });
    await before.must('POST', `/chambers/${id}/admit`, { by: ann, body: { did: later.did } });
    await before.close();
    const service = new TestService({ path, clock: before.clock });
    expect(await service.request('POST', `/chambers/${id}/join`, { by: bob })).toMatchObject({ status: 403 });
    expect(await service.request('POST', `/chambers/${id}/admit`, { by: bob, body: { did: bob.did } })).toMatchObject(
      refusal(403, 'FORUM_ERR_FORBIDDEN'),
    );
    await service.must('POST', `/chambers/${id}/admit`, { by: ann, body: { did: bob.did } });
    await service.must('POST', `/chambers/${id}/join`, { by: bob });
  });
});

describe('a chamber that requires proven wallets', () => {
  const RULES = { admission: { provenWallets: true } };
  const NOT_PROVEN = { status: 403, body: { error: 'FORUM_ERR_ADMISSION', failedRules: ['provenWallets'] } };

  it('a chamber that requires proven wallets admits an agent with a proven wallet, and records the wallet', async () => {
    const service = new TestService();
    const ann = await agentWith(service, walletOf(1));
    const id = await openChamber(service, [ann], RULES);
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ admission: { provenWallets: true } });
    const [, joined] = await service.events(id);
    expect(joined).toMatchObject({ payload: { walletAddress: walletOf(1).address, walletProven: true } });
  });

  it.each<readonly [string, (service: TestService, by: Signer) => Promise<void>]>([
    ['missing', async () => {}],
    [
      'by another wallet',
      async (service, by) => {
        const body = { ...(await provenRegistration(service, by, walletOf(1))), walletAddress: walletOf(2).address };
        expect(await service.request('POST', '/register', { by, body })).toMatchObject({ status: 400 });
      },
    ],
    [
      'for another agent',
      async (service, by) => {
        const { walletSignature, issuedAt } = await provenRegistration(service, new Signer(), walletOf(1));
        const body = { ...(await provenRegistration(service, by, walletOf(1))), walletSignature, issuedAt };
        expect(await service.request('POST', '/register', { by, body })).toMatchObject({ status: 400 });
      },
    ],
    [
      'of a wallet that was replaced without a proof',
      async (service, by) => {
        const { walletSignature: _, issuedAt: _at, ...body } = await provenRegistration(service, by, walletOf(1));
        await service.must('POST', '/register', { by, body: await provenRegistration(service, by, walletOf(1)) });
        await service.must('POST', '/register', { by, body: { ...body, walletAddress: walletOf(2).address } });
      },
    ],
  ])(
    'a chamber that requires proven wallets rejects an agent whose proof is %s, and says what to do',
    async (_what, prepare) => {
      const service = new TestService();
      const [ann, bob] = [await agentWith(service, walletOf(7)), await service.agent()];
      const id = await openChamber(service, [ann], RULES);
      await prepare(service, bob);
      const refused = await service.request('POST', `/chambers/${id}/join`, { by: bob });
      expect(refused).toMatchObject(NOT_PROVEN);
      expect(refused.body.detail).toMatch(/sign POST \/register again with walletSignature and issuedAt/);
      await service.must('POST', '/register', { by: bob, body: await provenRegistration(service, bob, walletOf(1)) });
      await service.must('POST', `/chambers/${id}/join`, { by: bob });
    },
  );

  it('a chamber that requires proven wallets admits only the first of 41 keys with the same wallet', async () => {
    const service = new TestService();
    const keys: Signer[] = [];
    for (let index = 0; index < 41; index++) keys.push(await agentWith(service, walletOf(1)));
    const id = await openChamber(service, [], RULES);
    const joins = keys.map((by) => service.prepare('POST', `/chambers/${id}/join`, { by }));
    const answers = await Promise.all(joins.map((join) => service.send(join)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ status, body }) => `${status} ${body.error}`))).toEqual(
      new Set(['409 FORUM_ERR_CONFLICT']),
    );
    expect(refused[0]?.body.detail).toContain(walletOf(1).address);
    const seat = answers.findIndex(({ status }) => status === 200);
    expect(await service.send(joins[seat] as Prepared)).toMatchObject({ status: 200, body: { turnOrder: 0 } });
  });

  it('a chamber that requires proven wallets records the wallet of the join in a proposal, not a later wallet of the agent', async () => {
    const service = new TestService();
    const ann = await agentWith(service, walletOf(1));
    const [id, open] = [await openChamber(service, [ann], RULES), await openChamber(service, [ann])];
    await service.must('POST', '/register', { by: ann, body: await provenRegistration(service, ann, walletOf(2)) });
    await enterPhase(service, id, 'PROPOSAL');
    for (const [chamber, wallet] of [
      [id, walletOf(1)],
      [open, walletOf(2)],
    ] as const) {
      await service.must('POST', `/chambers/${chamber}/propose`, { by: ann, body: { name: 'Idea', ticker: 'ABC' } });
      expect((await service.events(chamber)).at(-1)).toMatchObject({ payload: { creatorWallet: wallet.address } });
    }
  });

  it('a chamber that requires proven wallets names every failed rule in one response, and checks for duplicates last', async () => {
    const service = new TestService();
    const [ann, bob] = [await agentWith(service, walletOf(1)), await service.agent()];
    const id = await openChamber(service, [ann], { admission: { dids: [ann.did], provenWallets: true } });
    const refused = await service.request('POST', `/chambers/${id}/join`, { by: bob });
    expect(refused.body).toMatchObject({ error: 'FORUM_ERR_ADMISSION', failedRules: ['dids', 'provenWallets'] });
    expect(refused.body.detail).toMatch(/^dids: .*; provenWallets: /);
    expect(await service.request('POST', `/chambers/${id}/join`, { by: ann })).toMatchObject({ status: 409 });
  });
});

describe('the text of the agent guide', () => {
  const guideOf = async ({ app }: TestService) => (await app.request('/agent-guide', {}, {})).text();

  it('the text of the agent guide is enough to get from 403 to a seat with one request, if the rule is dids', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const id = await openChamber(service, [ann], { admission: { dids: [ann.did] } });
    expect(await service.request('POST', `/chambers/${id}/join`, { by: bob })).toMatchObject({ status: 403 });
    const [, path = ''] = /`POST (\/chambers\/\{id\}\/admit)` with `\{"did"\}`/.exec(await guideOf(service)) ?? [];
    await service.must('POST', path.replace('{id}', String(id)), { by: ann, body: { did: bob.did } });
    await service.must('POST', `/chambers/${id}/join`, { by: bob });
  });

  it('the text of the agent guide is enough to get from 403 to a seat with one request, if the rule is provenWallets', async () => {
    const service = new TestService();
    const [bob, wallet] = [await service.agent(), walletOf(1)];
    const id = await openChamber(service, [], { admission: { provenWallets: true } });
    expect(await service.request('POST', `/chambers/${id}/join`, { by: bob })).toMatchObject({ status: 403 });
    const [, text = ''] = /```text\n(Chamber[^`]*)\n```/.exec(await guideOf(service)) ?? [];
    const issuedAt = new Date(service.clock.read()).toISOString();
    const message = text
      .replace('<your DID>', bob.did)
      .replace(/<walletAddress[^>]*>/, wallet.address)
      .replace(/<issuedAt[^>]*>/, issuedAt);
    expect(message).not.toContain('<');
    const { operatorEmail: _, ...content } = registrationOf(bob);
    const walletSignature = await wallet.signMessage({ message });
    const body = { ...content, walletAddress: wallet.address, issuedAt, walletSignature };
    await service.must('POST', '/register', { by: bob, body });
    await service.must('POST', `/chambers/${id}/join`, { by: bob });
  });
});

it('a chamber whose list names a key that could never join is rejected', async () => {
  const { service, by } = await withAgent();
  const did = toDid(Uint8Array.of(1, ...new Array(31).fill(0)));
  const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), admission: { dids: [did] } };
  expect(await service.request('POST', '/chambers', { by, body })).toMatchObject(
    refusal(400, 'FORUM_ERR_VALIDATION', 'must be a did:key of an Ed25519 key'),
  );
});

it('a token rule without a chain is rejected', async () => {
  const { service, by } = await withAgent();
  const token = { address: walletOf(1).address, minBalance: 1 };
  const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), admission: { token } };
  expect(await service.request('POST', '/chambers', { by, body })).toMatchObject({
    status: 400,
    body: { error: 'FORUM_ERR_VALIDATION', detail: 'admission.token: this service has no chain' },
  });
});

describe('GET /me/todo', () => {
  async function todoOf(service: TestService, by: Signer) {
    const { todo, version } = await service.must('GET', '/me/todo', { by });
    return { may: todo[0]?.may, why: todo[0]?.why, version };
  }

  it('GET /me/todo offers the creator only joins and admissions that would be accepted, and otherwise gives the reason', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), admission: { dids: [bob.did] } };
    const { chamberId } = await service.must('POST', '/chambers', { by: ann, body });
    const before = await todoOf(service, ann);
    expect(before).toMatchObject({
      may: ['admit'],
      why: expect.stringContaining(`You may not: dids: ${ann.did} is not`),
    });
    await service.must('POST', `/chambers/${chamberId}/admit`, { by: ann, body: { did: ann.did } });
    expect((await todoOf(service, ann)).may).toEqual(['join', 'admit']);
    await service.must('POST', `/chambers/${chamberId}/join`, { by: ann });
    expect((await todoOf(service, ann)).may).toEqual(['admit']);
  });

  it('GET /me/todo offers join once the wallet is proven, unless the wallet already has a seat', async () => {
    const service = new TestService();
    const [ann, other] = [await service.agent(), await agentWith(service, walletOf(1))];
    const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), admission: { provenWallets: true } };
    const { chamberId } = await service.must('POST', '/chambers', { by: ann, body });
    const before = await todoOf(service, ann);
    expect(before).toMatchObject({ may: [], why: expect.stringContaining('You may not: provenWallets: ') });
    await service.must('POST', '/register', { by: ann, body: await provenRegistration(service, ann, walletOf(1)) });
    const proven = await todoOf(service, ann);
    expect(proven.may).toEqual(['join']);
    expect(proven.version).not.toBe(before.version);
    await service.must('POST', `/chambers/${chamberId}/join`, { by: other });
    expect(await todoOf(service, ann)).toMatchObject({ may: [], why: expect.stringContaining('already has a seat') });
  });

  it('GET /me/todo changes its version if only the reason against a join changes', async () => {
    const { service, ann, bob } = await withTwoAgents();
    const admission = { dids: [bob.did], provenWallets: true };
    const body = { name: 'Test', ...deadlinesFrom(service.clock.read()), admission };
    await service.must('POST', '/chambers', { by: ann, body });
    const before = await todoOf(service, ann);
    expect(before.why).toContain('provenWallets: ');
    await service.must('POST', '/register', { by: ann, body: await provenRegistration(service, ann, walletOf(1)) });
    const after = await todoOf(service, ann);
    expect(after.may).toEqual(before.may);
    expect(after.why).not.toContain('provenWallets: ');
    expect(after.version).not.toBe(before.version);
  });
});
