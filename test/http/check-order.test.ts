// The order of checks: a request with every fault is corrected one fault at a time, and each error names the first remaining fault.
import { expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { Signer } from '../kit/signer.ts';
import { type Call, PUBLIC_URL, TestService, withTwoAgents } from '../kit/test-service.ts';

const BAD_BODY = { comment: '' };
const UNKNOWN_IDEA = { comment: 'hm', ideaId: 'idea-9' };
const NO_JSON = `${JSON.stringify(UNKNOWN_IDEA)}}`;
const ANCIENT = 1_000_000_000;

it('the service responds with the first failed check', async () => {
  const service = new TestService();
  const [holder, member, outsider] = [await service.agent(), await service.agent(), await service.agent()];
  const nobody = new Signer();
  const inLobby = await openChamber(service, [holder, member]);
  service.clock.advance(HOUR / 2);
  const inDebate = await openChamber(service, [holder, member], {
    lobbyDeadline: new Date(service.clock.read() + 1).toISOString(),
    proposalDeadline: new Date(service.clock.read() + 1).toISOString(),
  });
  service.clock.advance(1);

  const forged = (by: Signer, body: unknown) => {
    const signed = by.sign({
      method: 'POST',
      url: `${PUBLIC_URL}/elsewhere`,
      body: JSON.stringify(body),
      created: ANCIENT,
    });
    return { body, headers: signed };
  };
  const noType = { 'content-type': 'text/plain' };
  const steps: readonly (readonly [number | string, Call, number, string, string?])[] = [
    [99, { body: NO_JSON.padEnd(70_000), headers: noType }, 413, 'TOO_LARGE'],
    [99, { body: NO_JSON, headers: noType }, 415, 'MEDIA_TYPE'],
    [99, { body: NO_JSON }, 400, 'VALIDATION', 'not valid JSON'],
    [99, { body: BAD_BODY }, 401, 'SIGNATURE', 'form: '],
    [99, { ...forged(nobody, {}), body: BAD_BODY }, 401, 'SIGNATURE', 'digest: '],
    [99, forged(nobody, BAD_BODY), 401, 'SIGNATURE', 'registration: '],
    [99, { by: nobody, body: BAD_BODY, created: ANCIENT }, 401, 'SIGNATURE', 'registration: '],
    [99, forged(outsider, BAD_BODY), 401, 'SIGNATURE', 'verification: '],
    [99, { by: outsider, body: BAD_BODY, created: ANCIENT }, 401, 'SIGNATURE', 'age: '],
    [99, { by: outsider, body: BAD_BODY }, 404, 'NOT_FOUND', 'chamber'],
    [inLobby, { by: outsider, body: BAD_BODY }, 400, 'VALIDATION', 'comment: '],
    [inLobby, { by: outsider, body: UNKNOWN_IDEA }, 403, 'PHASE', 'expected phase DEBATE, actual phase LOBBY'],
    [inDebate, { by: outsider, body: UNKNOWN_IDEA }, 403, 'MEMBER', outsider.did],
    [inDebate, { by: member, body: UNKNOWN_IDEA }, 403, 'TURN', holder.did],
    [inDebate, { by: holder, body: UNKNOWN_IDEA }, 404, 'NOT_FOUND', 'idea-9'],
  ];
  for (const [chamberId, call, status, code, detail = ''] of steps) {
    const answer = await service.request('POST', `/chambers/${chamberId}/debate`, call);
    expect(answer).toMatchObject({
      status,
      body: { error: `FORUM_ERR_${code}`, detail: expect.stringContaining(detail) },
    });
  }
  expect(
    await service.request('POST', `/chambers/${inDebate}/debate`, { by: holder, body: { comment: 'hm' } }),
  ).toMatchObject({ status: 200 });
});

it('the service checks for duplicates last', async () => {
  const { service, ann: holder, bob: member } = await withTwoAgents({ settings: { IDEAS_MAX: '1' } });
  const id = await openChamber(service, [holder, member]);
  await enterPhase(service, id, 'PROPOSAL');
  const idea = { name: 'Idea', ticker: 'ABC' };
  await service.must('POST', `/chambers/${id}/propose`, { by: holder, body: idea });
  const outcomes = [];
  for (const [by, body] of [
    [member, idea],
    [holder, idea],
    [holder, { ...idea, ticker: 'XYZ' }],
  ] as const) {
    outcomes.push((await service.request('POST', `/chambers/${id}/propose`, { by, body })).body.error);
  }
  expect(outcomes).toEqual(['FORUM_ERR_TURN', 'FORUM_ERR_CONFLICT', 'FORUM_ERR_CONFLICT']);
});
