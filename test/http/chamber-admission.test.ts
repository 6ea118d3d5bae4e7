// Who may join a chamber, over HTTP on a real log: from a refusal to a seat.
import { describe, expect, it } from 'vitest';
import { openChamber } from '../kit/chambers.ts';
import { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';

describe('a chamber with a list of agents', () => {
  it('is shown with its rules, and others with none', async () => {
    const service = new TestService();
    const ann = await service.agent();
    const id = await openChamber(service, [ann], { admission: { dids: [ann.did] } });
    const open = await openChamber(service, [ann]);
    expect(await service.must('GET', `/chambers/${id}`)).toMatchObject({ admission: { dids: [ann.did] } });
    expect(await service.must('GET', `/chambers/${open}`)).toMatchObject({ admission: null });
  });

  it('tells an agent in one answer what it lacks, and one more request of the creator gives it a seat', async () => {
    const service = new TestService();
    const [ann, bob] = [await service.agent(), await service.agent()];
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

  it('keeps its list over a restart', async () => {
    const path = temporaryDatabase();
    const before = new TestService({ path });
    const [ann, bob] = [await before.agent(), await before.agent()];
    const later = new Signer();
    const id = await openChamber(before, [ann], { admission: { dids: [ann.did] } });
    await before.must('POST', `/chambers/${id}/admit`, { by: ann, body: { did: later.did } });
    await before.close();
    const service = new TestService({ path, clock: before.clock });
    expect(await service.request('POST', `/chambers/${id}/join`, { by: bob })).toMatchObject({ status: 403 });
    expect(await service.request('POST', `/chambers/${id}/admit`, { by: bob, body: { did: bob.did } })).toMatchObject({
      status: 403,
      body: { error: 'FORUM_ERR_FORBIDDEN' },
    });
    await service.must('POST', `/chambers/${id}/admit`, { by: ann, body: { did: bob.did } });
    await service.must('POST', `/chambers/${id}/join`, { by: bob });
  });
});
