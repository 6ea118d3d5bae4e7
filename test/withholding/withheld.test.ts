// An operator withholds texts of a running service: they disappear from every response and file, and all proofs remain valid, as
// this test verifies with its own code. by code of this test.
import { createPublicKey, hash, verify } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MerkleTree } from 'merkletreejs';
import { describe, expect, it } from 'vitest';
import { keccak256 } from '../../src/crypto/keccak.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import type { ServiceFact } from '../../src/vocabulary/events.ts';
import { canonicalJson } from '../../src/vocabulary/json.ts';
import { allocationOf, enterPhase, openChamber } from '../kit/chambers.ts';
import { TestClock } from '../kit/clock.ts';
import { ACCEPT_RECEIPT, isValidReceipt, receiptOf } from '../kit/receipts.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import type { Answer, Prepared, TestService } from '../kit/test-service.ts';
import { PUBLIC_URL, registrationOf, TestService as Service } from '../kit/test-service.ts';
import { eventually } from '../kit/until.ts';
import { everyResponse, SECRET } from './every-response.ts';

function serviceWithList(list = '') {
  const file = join(temporaryFolder(), 'withhold');
  writeFileSync(file, list);
  const path = temporaryDatabase();
  const clock = new TestClock();
  const open = () => new Service({ path, clock, settings: { WITHHOLD_FILE: file } });
  const service = open();
  service.composed.withholder.start();
  const withholdNow = async (stream: StreamId, eventId: number, reason = 'secret') => {
    writeFileSync(file, `${readFileSync(file, 'utf8')}${stream}:${eventId} ${reason}\n`);
    service.composed.withholder.reload();
    await eventually(async () => expect((await lineOf(service, stream, eventId))['withheld']).toBeDefined(), 10_000);
  };
  return { service, path, file, open, withholdNow };
}

async function lineOf(service: TestService, stream: StreamId, eventId: number): Promise<Record<string, unknown>> {
  return JSON.parse((await service.lines(stream))[eventId - 1] ?? '{}');
}

/** Returns the raw contents of the database's files. */
function filesWith(path: string): readonly string[] {
  const folder = dirname(path);
  return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(SECRET));
}

function leafOf(line: string): Buffer {
  const { withheld } = JSON.parse(line);
  if (withheld !== undefined) return Buffer.from(withheld.leaf.slice(2), 'hex');
  const once = keccak256(Buffer.from(line));
  return Buffer.from(keccak256(once));
}

/** Returns the root of the chamber's moves, computed by merkletreejs. */
function rootOf(lines: readonly string[]): string {
  const moves = lines.filter((line) => JSON.parse(line).did !== null).map(leafOf);
  const node = (bytes: Buffer) => Buffer.from(keccak256(bytes));
  return new MerkleTree(moves, node, { sortPairs: true }).getHexRoot();
}

/** Returns whether the service's key signed the stub, verified with node:crypto alone. */
function isSigned(line: string, thumbprint: string): boolean {
  const { withheld, ...event } = JSON.parse(line);
  const { signature, ...terms } = withheld;
  const { keyid, key: x } = withheld;
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  const own = hash('sha256', `{"crv":"Ed25519","kty":"OKP","x":"${x}"}`, 'base64url');
  const text = `Chamber Coordination Service withheld line\n${canonicalJson({ ...event, withheld: terms })}`;
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  return (
    own === keyid && keyid === thumbprint && verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'))
  );
}

async function proofsOf(service: TestService, chamberId: number) {
  const { root, eventCount } = await service.must('GET', `/chambers/${chamberId}/merkle-preview`);
  const proofs = [];
  for (let eventId = 1; eventId <= eventCount; eventId++) {
    proofs.push(await service.must('GET', `/chambers/${chamberId}/events/${eventId}/proof`));
  }
  await service.publish();
  const logId = service.log.logId;
  const checkpoint = await (await service.app.request(`/log/${logId}/checkpoint`, {}, {})).text();
  const tile = Buffer.from(
    await (await service.app.request(`/log/${logId}/tile/entries/000.p/${eventCount}`, {}, {})).arrayBuffer(),
  );
  return { root, proofs, checkpoint, tile: tile.toString('hex') };
}

async function debated(service: TestService, secretIn: 'comment' | 'proposal') {
  const [ann, bob] = [await service.agent({ label: 'Ann' }), await service.agent()];
  const id = await openChamber(service, [ann, bob]);
  await enterPhase(service, id, 'PROPOSAL');
  const text = (isHere: boolean) => (isHere ? SECRET : 'plain');
  const idea = { name: text(secretIn === 'proposal'), ticker: 'RAIN', description: text(secretIn === 'proposal') };
  const proposed = service.prepare('POST', `/chambers/${id}/propose`, { by: ann, body: idea });
  expect(await service.send(proposed)).toMatchObject({ status: 200 });
  await enterPhase(service, id, 'DEBATE');
  const body = {
    ideaId: 'idea-1',
    comment: text(secretIn === 'comment'),
    refinement: { note: text(secretIn === 'comment') },
  };
  const said: Prepared = service.prepare('POST', `/chambers/${id}/debate`, { by: ann, body });
  const answer = await service.send(said);
  expect(answer.status).toBe(200);
  return { id, ann, bob, said, proposed, answer, ids: { id: [`${id}`], did: [ann.did, bob.did], ticker: ['RAIN'] } };
}

describe('a withheld text', () => {
  it('a withheld text is gone from every response and file, its stub is signed, and every proof is unchanged', async () => {
    const { service, path, withholdNow } = serviceWithList();
    const { id, ids, said, answer } = await debated(service, 'comment');
    expect(await everyResponse(service, ids)).toContain('/events');
    expect(filesWith(path)).not.toEqual([]);
    const before = await proofsOf(service, id);
    await withholdNow(id, 5, 'personal-data');
    expect(await everyResponse(service, ids)).toBe('');
    await eventually(async () => expect(filesWith(path)).toEqual([]), 10_000);
    const lines = await service.lines(id);
    const [, , , , stub = ''] = lines;
    expect(JSON.parse(stub)).toMatchObject({
      ...{ eventId: 5, request: null, payload: { comment: '[withheld]', ideaId: 'idea-1' } },
      withheld: { reason: 'personal-data', log: service.log.logId },
    });
    const { payload } = await lineOf(service, id, 1);
    expect(isSigned(stub, (payload as { serviceKeys: { receipts: string } }).serviceKeys.receipts)).toBe(true);
    const shown = async (suffix: string, accept: string) =>
      (await service.app.request(`/chambers/${id}${suffix}`, { headers: { accept } }, {})).text();
    expect(await shown('', 'text/html')).toContain('The service has withheld what was written here: personal-data');
    expect(await shown('/transcript', 'text/markdown')).toContain('[withheld: personal-data]');
    expect(await proofsOf(service, id)).toEqual(before);
    expect(rootOf(lines)).toBe(before.root);
    expect(await service.send(said)).toMatchObject({ status: 200, body: answer.body });
    expect(await service.lines(id)).toEqual(lines);
  });

  it('a withheld text of a settled chamber is gone from its outcome, whose ETag changes', async () => {
    const { service, path, withholdNow } = serviceWithList();
    const { id, ids } = await debated(service, 'proposal');
    await enterPhase(service, id, 'COMMITTED');
    const outcome = async () => {
      const response = await service.app.request(`/chambers/${id}/outcome`, {}, {});
      return { etag: response.headers.get('etag'), text: await response.text() };
    };
    const before = await outcome();
    expect(before.text).toContain(SECRET);
    const proofs = await proofsOf(service, id);
    await withholdNow(id, 4);
    const after = await outcome();
    expect(after.etag).not.toBe(before.etag);
    expect(JSON.parse(after.text).ideas).toMatchObject([{ ideaId: 'idea-1', name: '[withheld]', ticker: 'RAIN' }]);
    expect(await everyResponse(service, ids)).toBe('');
    await eventually(async () => expect(filesWith(path)).toEqual([]), 10_000);
    expect(await proofsOf(service, id)).toEqual(proofs);
  });

  it('a withheld text of an account is also gone from its later lines and the agent’s joins', async () => {
    const { service, path, withholdNow } = serviceWithList();
    const ann = await service.agent({ label: SECRET, personality: { loves: ['rain', SECRET] } });
    const id = await openChamber(service, [ann]);
    await service.must('PUT', '/personality', { by: ann, body: { patch: { style: 'short' } } });
    await service.must('PUT', '/personality', { by: ann, body: { patch: { loves: [] } } });
    await service.must('PUT', '/personality', { by: ann, body: { patch: { hates: ['noise'] } } });
    const ids = { id: [`${id}`], did: [ann.did], ticker: ['RAIN'] };
    expect(await everyResponse(service, ids)).toContain('/agents');
    const before = await proofsOf(service, id);
    await withholdNow(ann.did, 1, 'law');
    expect(await everyResponse(service, ids)).toBe('');
    await eventually(async () => expect(filesWith(path)).toEqual([]), 10_000);
    const account = await service.events(ann.did);
    expect(account.map(({ withheld }) => withheld?.reason)).toEqual(['law', 'law', undefined, undefined]);
    expect((await lineOf(service, id, 2))['withheld']).toMatchObject({ reason: 'law' });
    expect(await proofsOf(service, id)).toEqual(before);
    expect(await service.must('GET', `/agents/${ann.did}`)).toMatchObject({
      label: null,
      personality: { hates: ['noise'] },
    });
  });

  it('after withholding, a retry of the registration gets the same response and event, and another request gets no receipt', async () => {
    const { service, withholdNow } = serviceWithList();
    const ann = await service.agent();
    const { operatorEmail: _, ...content } = registrationOf(ann);
    const body = { ...content, label: SECRET, personality: { style: SECRET } };
    const headers = { 'accept-signature': ACCEPT_RECEIPT };
    const prepare = () => service.prepare('POST', '/register', { by: ann, body, headers });
    const [registration, repetition] = [prepare(), prepare()];
    const sent = await service.send(registration);
    service.clock.advance(1_000);
    const repeated = await service.send(repetition);
    const answerOf = (answer: Answer) => ({ body: answer.body, event: answer.headers.get('event') });
    expect([answerOf(sent).event, answerOf(repeated).event]).toEqual([expect.stringContaining(';id=2;leaf='), null]);
    await withholdNow(ann.did, 2);
    const [again, repeatedAgain] = [await service.send(registration), await service.send(repetition)];
    expect([again, repeatedAgain].map(answerOf)).toEqual([sent, repeated].map(answerOf));
    const { keys } = await service.must('GET', '/.well-known/http-message-signatures-directory');
    expect(await isValidReceipt(receiptOf(registration, again, PUBLIC_URL), keys)).toBe(true);
  });

  it('texts stay withheld after a restart, and the list has all stubs in order', async () => {
    const { service, open, withholdNow } = serviceWithList();
    const { id, ann } = await debated(service, 'comment');
    await withholdNow(id, 5);
    await withholdNow(ann.did, 1);
    const listOf = async (each: TestService, query = '') =>
      (await (await each.app.request(`/log/${each.log.logId}/withheld${query}`, {}, {})).text())
        .split('\n')
        .slice(0, -1);
    const list = await listOf(service);
    expect(list.map((line) => JSON.parse(line).eventId)).toEqual([5, 2, 1]);
    expect(await listOf(service, '?after=1&limit=1')).toEqual(list.slice(1, 2));
    expect(await listOf(service, '?after=3')).toEqual([]);
    await service.close();
    const again = open();
    again.composed.withholder.start();
    expect(await listOf(again)).toEqual(list);
    expect(await everyResponse(again, { id: [`${id}`] })).toBe('');
  });
});

const RAW = `0x02${Buffer.from(SECRET).toString('hex')}` as const;

/** A committed chamber with a graduated idea whose texts are secret. */
async function graduated() {
  const opened = serviceWithList();
  const { service } = opened;
  const { id, ann, ids } = await debated(service, 'proposal');
  const { commit, reveal } = allocationOf(id, ann, { 'idea-1': 5_000 });
  await enterPhase(service, id, 'ALLOCATE_COMMIT');
  await service.must('POST', `/chambers/${id}/allocate/commit`, { by: ann, body: commit });
  await enterPhase(service, id, 'ALLOCATE_REVEAL');
  await service.must('POST', `/chambers/${id}/allocate/reveal`, { by: ann, body: reveal });
  await enterPhase(service, id, 'COMMITTED');
  const record = (fact: ServiceFact) => service.forum.submit({ operation: 'record', chamberId: id, fact });
  const transaction = { chainId: 1, nonce: 0, txHash: `0x${'33'.repeat(32)}`, rawTransaction: RAW } as const;
  const submit = () => record({ type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...transaction } });
  return { ...opened, id, ids, record, submit, txHash: transaction.txHash };
}

describe('the deployment of an idea with a withheld text', () => {
  it('the deployment of an idea with a withheld text does not start', async () => {
    const { id, withholdNow, submit } = await graduated();
    await withholdNow(id, 4);
    await expect(submit()).rejects.toMatchObject({ code: 'FORUM_ERR_CONFLICT' });
  });

  it('a running deployment keeps its transaction until it ends; then transaction and reason are withheld, too', async () => {
    const { service, path, id, ids, withholdNow, submit, record, txHash } = await graduated();
    const { eventId } = await submit();
    await withholdNow(id, 4, 'abuse');
    expect((await lineOf(service, id, eventId))['payload']).toMatchObject({ rawTransaction: RAW });
    await record({ type: 'idea.deploy_failed', payload: { ideaId: 'idea-1', txHash, reason: `Taken("${SECRET}")` } });
    await eventually(async () => {
      const [submitted, failed] = (await service.events(id)).slice(-2);
      expect([submitted?.withheld?.reason, failed?.withheld?.reason]).toEqual(['abuse', 'abuse']);
      expect(submitted?.payload).toEqual({ ideaId: 'idea-1', chainId: 1, nonce: 0, txHash });
      expect(failed?.payload).toEqual({ ideaId: 'idea-1', txHash, reason: '[withheld]' });
    }, 10_000);
    expect(await everyResponse(service, ids)).toBe('');
    await eventually(async () => expect(filesWith(path)).toEqual([]), 10_000);
  });
});

describe('an entry that cannot be applied', () => {
  it.each([
    ['names no event', '1:99 law', 'event not found'],
    ['names no chamber', '7:1 law', 'event not found'],
    ['names a move without a text', '1:3 law', 'a line of type chamber.joined without a text that can be withheld'],
    ['has an unknown reason', '1:5 rude', 'the reason must be one of personal-data, secret, abuse, law'],
    ['is malformed', 'whatever', 'must be <chamberId or DID>:<eventId> <reason>'],
  ])('an entry that %s is reported once, and the others are applied', async (_what, entry, problem) => {
    const { service, file } = serviceWithList();
    const { id } = await debated(service, 'comment');
    writeFileSync(file, `${entry}\n${id}:5 secret\n`);
    for (let reading = 0; reading < 3; reading++) service.composed.withholder.reload();
    await eventually(async () => expect((await lineOf(service, id, 5))['withheld']).toBeDefined(), 10_000);
    service.composed.withholder.reload();
    await eventually(() =>
      expect(service.composed.withholder.state()).toMatchObject({ failedEntries: 1, withheld: 1 }),
    );
    const reports = service.defects.splice(0).map((defect) => JSON.parse((defect as Error).message));
    expect(reports).toMatchObject([{ line: 1, reason: expect.stringContaining(problem) }]);
  });

  it('an unreadable list is reported once, and read later', async () => {
    const { service, file } = serviceWithList();
    const { id } = await debated(service, 'comment');
    writeFileSync(`${file}.new`, '');
    const missing = new Service({ path: temporaryDatabase(), settings: { WITHHOLD_FILE: `${file}.missing` } });
    missing.composed.withholder.start();
    expect(missing.composed.withholder.state().isListRead).toBe(false);
    const [report, ...more] = missing.defects.splice(0);
    expect([(report as Error).message, more]).toEqual([
      expect.stringContaining('list of texts to withhold not read'),
      [],
    ]);
    expect(await missing.must('GET', '/health')).toMatchObject({ ok: true });
    expect((await lineOf(service, id, 5))['withheld']).toBeUndefined();
  });
});
