// The contract of withholding for every store: a service withholds the texts of a chamber.
import { expect, it } from 'vitest';
import { restate, withhold } from '../../src/crypto/stub.ts';
import { openStub } from '../../src/crypto/stub-reader.ts';
import { publicKeyOf, signWith } from '../../src/keys/private-key.ts';
import type { EventLog } from '../../src/log/log.ts';
import { newLogId } from '../../src/log/log-id.ts';
import { writeWholeLog } from '../../src/log/open-log.ts';
import { renewLog } from '../../src/log/sql/maintenance.ts';
import { withholdIn } from '../../src/log/sql/withhold-in.ts';
import type { Store } from '../../src/log/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import type { StubLine } from '../../src/log/withholding.ts';
import { faultsOf, rebuildLog } from '../durability/log-book.ts';
import { allocationOf, enterPhase, openChamber, recordCommit } from '../kit/chambers.ts';
import { HOUR, type TestClock } from '../kit/clock.ts';
import type { Signer } from '../kit/signer.ts';
import { type Prepared, TestService } from '../kit/test-service.ts';

const SEED = Buffer.alloc(32, 7);
const KEY = { publicKey: publicKeyOf(SEED), sign: signWith(SEED) };

export async function stubOf({ log }: Pick<Store, 'log'>, stream: StreamId, eventId: number): Promise<StubLine> {
  const { ndjson } = await log.readPage(stream, eventId - 1, 1);
  const made = withhold(ndjson.toString().slice(0, -1), { at: 0, reason: 'law', log: log.logId, key: KEY });
  if (!('stub' in made)) throw new Error(made.refused);
  return { stream, eventId, line: Buffer.from(made.stub) };
}

/** Part of each text; it is nowhere in the log once the lines are withheld. */
export const SECRET = 'Quattrocchi-7781';
const secret = (what: string) => `${what} ${SECRET}`;

export interface Place {
  /** A path or a URL. */
  readonly place: string;
  readonly open: () => Promise<Store> | Store;
}

export interface WithheldPlace extends Place {
  /** Moves a closed log to another place of the same kind. */
  readonly copy: (place: string) => Promise<Place>;
  /** Runs a statement as another program. */
  readonly tamper: (place: string, sql: string) => Promise<unknown>;
  /** Whether the files or tables of a closed log hold the secret. */
  readonly remains: (place: string) => Promise<boolean>;
}

function withholdInto(place: string, stubs: readonly Pick<StubLine, 'line'>[]) {
  const lines = async function* () {
    for (const { line } of stubs) yield line;
  };
  return writeWholeLog(place, async (log) => {
    const counts = await withholdIn(log, lines());
    await log.eraseBytes();
    return counts;
  });
}

export interface Debated {
  readonly service: TestService;
  readonly chamberId: number;
  readonly members: readonly Signer[];
  readonly comment: Prepared;
  /** The events that hold the secret. */
  readonly events: readonly (readonly [stream: StreamId, eventId: number])[];
}

/** A chamber in DEBATE with the secret in its name, an idea, a comment, and the label and personality of its first member. */
export async function debated(
  store: Store,
  options: { clock?: TestClock; wrapLog?: (log: EventLog) => EventLog } = {},
): Promise<Debated> {
  const service = new TestService({ store, ...options });
  const first = await service.agent();
  const second = await service.agent();
  const personality = { patch: { style: secret('style') } };
  await service.must('PUT', '/personality', { by: first, body: personality });
  const chamberId = await openChamber(service, [first, second], { name: secret('name'), topic: secret('topic') });
  await enterPhase(service, chamberId, 'PROPOSAL');
  const idea = { name: secret('idea'), ticker: 'TICK', description: secret('description').repeat(270) };
  await service.must('POST', `/chambers/${chamberId}/propose`, { by: first, body: idea });
  await service.must('POST', `/chambers/${chamberId}/pass`, { by: first });
  await enterPhase(service, chamberId, 'DEBATE');
  const body = { ideaId: 'idea-1', comment: secret('comment'), refinement: { note: secret('note') } };
  const comment = service.prepare('POST', `/chambers/${chamberId}/debate`, { by: first, body });
  const { eventId } = (await service.send(comment)).body;
  const account = await service.log.lastEventId(first.did);
  const events = [
    [chamberId, 1],
    [chamberId, eventId - 2],
    [chamberId, eventId],
    [first.did, account],
  ] as const;
  return { service, chamberId, members: [first, second], comment, events };
}

export async function stubsOf(store: Store, events: Debated['events']): Promise<readonly StubLine[]> {
  return Promise.all(events.map(([stream, eventId]) => stubOf(store, stream, eventId)));
}

/** Everything that the service and its store report about the chamber and its members. */
async function textOf({ service, chamberId, members }: Debated): Promise<string> {
  const paths = [
    '/chambers',
    `/chambers/${chamberId}`,
    `/chambers/${chamberId}/ideas`,
    '/ideas/TICK',
    `/chambers/${chamberId}/events`,
  ];
  const bodies = [...paths, ...members.map(({ did }) => `/agents/${did}/events`)].map(async (path) =>
    (await service.app.request(path, {}, {})).text(),
  );
  const snapshots = [chamberId, ...members.map(({ did }) => did)].map(async (stream) =>
    JSON.stringify(await service.log.readSnapshot(stream)),
  );
  return (await Promise.all([...bodies, ...snapshots])).join('\n');
}

/** A closed log with all accounts withheld: more stubs than one transaction replaces. */
async function manyStubs({ place, open }: Place) {
  const service = new TestService({ store: await open() });
  const agents = [];
  for (let count = 0; count < 101; count++) agents.push(await service.agent({ label: secret('label') }));
  const stubs = await stubsOf(
    service.store,
    agents.map(({ did }) => [did, 1]),
  );
  await service.store.withholding.withhold(stubs);
  await service.close();
  await renewed(place);
  return stubs;
}

/** Renews the id of a closed log. */
export async function renewed(place: string): Promise<void> {
  await writeWholeLog(place, (log) => renewLog(log, { logId: newLogId() }));
}

export const restatedFor =
  (log: string, seed: Uint8Array = SEED) =>
  (stub: string) =>
    restate(stub, { at: 1, log, key: { publicKey: publicKeyOf(seed), sign: signWith(seed) } });

/** The logs that the stubs name, and the stubs without log and signature. */
function readStubs(ndjson: Uint8Array | string) {
  const stubs = ndjson
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const logs = new Set(stubs.map(({ withheld }) => withheld.log));
  return {
    logs: [...logs],
    facts: stubs.map((stub) => ({ ...stub, withheld: { ...stub.withheld, log: '', signature: '' } })),
  };
}

export function describeWithholding(begin: () => Promise<WithheldPlace>): void {
  it('no response holds a withheld text, and root, proofs, head and order are unchanged', async () => {
    const { place, open } = await begin();
    const before = await debated(await open());
    const { service, chamberId, events } = before;
    expect(await textOf(before)).toContain(SECRET);
    const [root, head, places] = [
      await service.must('GET', `/chambers/${chamberId}/merkle-preview`),
      await service.log.lastEventId(chamberId),
      await service.log.lastPlace(),
    ];
    const stubs = await stubsOf(service.store, events);
    expect(await service.store.withholding.withhold(stubs)).toHaveLength(stubs.length);
    expect(await textOf(before)).not.toContain(SECRET);
    expect(await service.must('GET', `/chambers/${chamberId}/merkle-preview`)).toEqual(root);
    expect([await service.log.lastEventId(chamberId), await service.log.lastPlace()]).toEqual([head, places]);
    expect(await faultsOf(place)).toEqual([]);
    await service.close();
    await rebuildLog(place);
    const { clock } = service;
    const again = { ...before, service: new TestService({ store: await open(), clock }) };
    expect(await textOf(again)).not.toContain(SECRET);
    expect(await again.service.must('GET', `/chambers/${chamberId}/merkle-preview`)).toEqual(root);
    expect(await faultsOf(place)).toEqual([]);
  });

  it('a repeated request finds its first event, also after a restart', async () => {
    const { open } = await begin();
    const { service, chamberId, comment, events } = await debated(await open());
    await service.store.withholding.withhold(await stubsOf(service.store, events));
    const head = await service.log.lastEventId(chamberId);
    expect(await service.send(comment)).toMatchObject({ status: 200, body: { eventId: head } });
    await service.close();
    const again = new TestService({ store: await open(), clock: service.clock });
    expect(await again.send(comment)).toMatchObject({ status: 200, body: { eventId: head } });
    expect(await again.log.lastEventId(chamberId)).toBe(head);
  });

  it('the first stub of an event is final, and stubs are listed in their order', async () => {
    const { open } = await begin();
    const { service, chamberId, events } = await debated(await open());
    const { withholding } = service.store;
    const stubs = await stubsOf(service.store, events);
    const [created, ...rest] = stubs;
    if (created === undefined) throw new Error('no stub');
    const heard: unknown[] = [];
    withholding.onWithheld((streams) => heard.push([...(streams ?? [])]));
    expect(await withholding.withhold([created])).toMatchObject([{ stream: chamberId, eventId: 1 }]);
    expect(await withholding.withhold(stubs)).toHaveLength(rest.length);
    expect(await withholding.withhold(stubs)).toEqual([]);
    expect(heard).toEqual([[chamberId], [chamberId, events[3]?.[0]]]);
    expect([withholding.through, await withholding.revisionOf(chamberId)]).toEqual([4, 3]);
    const lines = stubs.map(({ line }) => `${Buffer.from(line)}\n`);
    expect(await withholding.read(0, 1_000)).toMatchObject({ count: 4, last: 4, ndjson: Buffer.from(lines.join('')) });
    expect(await withholding.read(1, 2)).toMatchObject({
      count: 2,
      last: 3,
      ndjson: Buffer.from(lines.slice(1, 3).join('')),
    });
    expect(await withholding.read(4, 1_000)).toMatchObject({ count: 0, last: 4 });
  });

  it('a stub of a different line or a missing event, or with a remaining text, changes nothing', async () => {
    const { open } = await begin();
    const { service, chamberId, events } = await debated(await open());
    const { withholding } = service.store;
    const [one, other] = await stubsOf(service.store, events);
    if (one === undefined || other === undefined) throw new Error('no stub');
    const wrong: readonly (readonly [StubLine, string])[] = [
      [{ ...one, line: other.line }, 'leaf'],
      [{ ...one, eventId: 99 }, 'not found'],
      [{ ...one, line: Buffer.from(Buffer.from(one.line).toString().replace('"[withheld]"', '"other"')) }, 'differs'],
      [{ ...one, line: (await service.log.readPage(chamberId, 0, 1)).ndjson.subarray(0, -1) }, 'not a stub'],
    ];
    for (const [stub, problem] of wrong) await expect(withholding.withhold([other, stub])).rejects.toThrow(problem);
    expect([withholding.through, await withholding.revisionOf(chamberId)]).toEqual([0, 0]);
  });

  it('a copy keeps the stubs and their numbers, and fsck reports a stub without a number', async () => {
    const { place, open, copy, tamper } = await begin();
    const before = await debated(await open());
    await before.service.store.withholding.withhold(await stubsOf(before.service.store, before.events));
    const stubs = await before.service.store.withholding.read(0, 1_000);
    await before.service.close();
    const target = await copy(place);
    const service = new TestService({ store: await target.open(), clock: before.service.clock });
    expect(await textOf({ ...before, service })).not.toContain(SECRET);
    expect(await service.store.withholding.read(0, 1_000)).toEqual(stubs);
    await service.close();
    expect(await faultsOf(target.place)).toEqual([]);
    await tamper(target.place, 'DELETE FROM withheld WHERE number = 1');
    expect(await faultsOf(target.place)).toMatchObject([
      { stream: before.chamberId, eventId: 1, problem: 'its line is a stub that has no number in table withheld' },
      { problem: 'the numbers in table withheld have a gap' },
    ]);
  });

  it('a copy made before a withholding accepts the same stubs, and then holds no withheld text', async () => {
    const { place, open, copy, remains } = await begin();
    const before = await debated(await open());
    const { store } = before.service;
    const stubs = await stubsOf(store, before.events);
    await before.service.close();
    const target = await copy(place);
    const counts = await withholdInto(target.place, stubs.slice(0, 1));
    expect(counts).toEqual({ withheld: 1, alreadyWithheld: 0, missing: 0 });
    const later = Buffer.from(stubs[0]?.line ?? '').toString();
    await expect(withholdInto(target.place, [{ line: Buffer.from(later.replace('law', 'abuse')) }])).rejects.toThrow(
      'stub 1 is a stub whose signature does not verify',
    );
    expect(await withholdInto(target.place, stubs)).toEqual({ withheld: 3, alreadyWithheld: 1, missing: 0 });
    expect(await faultsOf(target.place)).toEqual([]);
    expect(await remains(target.place)).toBe(false);
    const service = new TestService({ store: await target.open(), clock: before.service.clock });
    expect(await textOf({ ...before, service })).not.toContain(SECRET);
    expect(await service.send(before.comment)).toMatchObject({ status: 200, body: { eventId: before.events[2]?.[1] } });
    expect(service.store.withholding.through).toBe(4);
  });

  it('a log with a new logId reissues its stubs for it once, and changes nothing else', async () => {
    const { place, open } = await begin();
    const before = await debated(await open());
    const { chamberId, events, service } = before;
    await service.store.withholding.withhold(await stubsOf(service.store, events));
    const stubs = await service.store.withholding.read(0, 1_000);
    const root = await service.must('GET', `/chambers/${chamberId}/merkle-preview`);
    await service.close();
    await renewed(place);
    const store = await open();
    expect(await store.withholding.restate(restatedFor(store.log.logId))).toBe(4);
    const after = await store.withholding.read(0, 1_000);
    expect(readStubs(after.ndjson)).toEqual({ ...readStubs(stubs.ndjson), logs: [store.log.logId] });
    for (const line of after.ndjson.toString().trimEnd().split('\n')) expect(() => openStub(line)).not.toThrow();
    expect(await store.withholding.restate(() => expect.fail('all stubs are reissued'))).toBe(0);
    const again = new TestService({ store, clock: service.clock });
    expect(await again.must('GET', `/chambers/${chamberId}/merkle-preview`)).toEqual(root);
    expect(await store.withholding.revisionOf(chamberId)).toBe(3);
    await again.close();
    expect(await faultsOf(place)).toEqual([]);
  });

  it('the next start finishes a reissue of stubs that was interrupted between two transactions', async () => {
    const place = await begin();
    const stubs = await manyStubs(place);
    const store = await place.open();
    const { logId } = store.log;
    let count = 0;
    const dies = (stub: string) => (++count > 100 ? expect.fail('the process exits') : restatedFor(logId)(stub));
    await expect(store.withholding.restate(dies)).rejects.toThrow('the process exits');
    expect(readStubs((await store.withholding.read(0, 1_000)).ndjson).logs).toHaveLength(2);
    await store.close();
    const again = await place.open();
    expect(await again.withholding.restate(restatedFor(logId))).toBe(stubs.length - 100);
    expect(readStubs((await again.withholding.read(0, 1_000)).ndjson).logs).toEqual([logId]);
    expect(await again.withholding.restate(() => expect.fail('all stubs are reissued'))).toBe(0);
    await again.close();
    expect(await faultsOf(place.place)).toEqual([]);
  });

  it('the next start reissues stubs that were added to a restored copy after its start', async () => {
    const { place, open } = await begin();
    const { service, events } = await debated(await open());
    const [one, ...others] = await stubsOf(service.store, events);
    await service.store.withholding.withhold(one === undefined ? [] : [one]);
    await service.close();
    await renewed(place);
    const store = await open();
    const { logId } = store.log;
    await store.withholding.restate(restatedFor(logId));
    await store.close();
    expect(await withholdInto(place, others)).toMatchObject({ withheld: 3 });
    const again = await open();
    expect(await again.withholding.restate(restatedFor(logId))).toBe(3);
    expect(readStubs((await again.withholding.read(0, 1_000)).ndjson).logs).toEqual([logId]);
    await again.close();
  });

  it('no stub replaces a stub with different statements', async () => {
    const { place, open } = await begin();
    const { service, events } = await debated(await open());
    await service.store.withholding.withhold(await stubsOf(service.store, events));
    await service.close();
    await renewed(place);
    const store = await open();
    const other = (stub: string) => restatedFor(store.log.logId)(stub).replace('"ts":"2', '"ts":"3');
    await expect(store.withholding.restate(other)).rejects.toThrow();
    expect(readStubs((await store.withholding.read(0, 1_000)).ndjson).logs).not.toContain(store.log.logId);
    await store.close();
  });

  it('a deployment signed before its idea was withheld is not recorded', async () => {
    const { open } = await begin();
    const { service, chamberId, members, events } = await debated(await open());
    const [by] = members;
    if (by === undefined) throw new Error('no member');
    const { commit, reveal } = allocationOf(chamberId, by, { 'idea-1': 10_000 });
    await enterPhase(service, chamberId, 'ALLOCATE_COMMIT');
    await service.must('POST', `/chambers/${chamberId}/allocate/commit`, { by, body: commit });
    await enterPhase(service, chamberId, 'ALLOCATE_REVEAL');
    await service.must('POST', `/chambers/${chamberId}/allocate/reveal`, { by, body: reveal });
    service.clock.advance(HOUR);
    await recordCommit(service.forum, chamberId);
    const transaction = {
      chainId: 1,
      nonce: 1,
      txHash: `0x${'1'.repeat(64)}`,
      rawTransaction: `0x${Buffer.from(SECRET).toString('hex')}`,
    } as const;
    const fact = { type: 'relay.deploy_submitted', payload: { ideaId: 'idea-1', ...transaction } } as const;
    await service.store.withholding.withhold(await stubsOf(service.store, events.slice(0, 2)));
    const head = await service.log.lastEventId(chamberId);
    await expect(service.forum.submit({ operation: 'record', chamberId, fact })).rejects.toMatchObject({
      code: 'FORUM_ERR_CONFLICT',
    });
    expect(await service.log.lastEventId(chamberId)).toBe(head);
  });

  it('a move decided before a withholding restores no text', async () => {
    const { place, open } = await begin();
    let meanwhile: (() => Promise<unknown>) | undefined;
    const wrapLog = (log: EventLog): EventLog =>
      new Proxy(log, {
        get(target, name) {
          const value = Reflect.get(target, name, target);
          if (name !== 'append') return typeof value === 'function' ? value.bind(target) : value;
          return async (batch: never) => {
            const work = meanwhile;
            meanwhile = undefined;
            await work?.();
            return target.append(batch);
          };
        },
      });
    const before = await debated(await open(), { wrapLog });
    const { service, chamberId, members, events } = before;
    const stubs = await stubsOf(service.store, events);
    meanwhile = () => service.store.withholding.withhold(stubs);
    // The move's derived rows hold the idea's texts.
    const body = { ideaId: 'idea-1', comment: 'hm', stance: 'for' };
    await service.must('POST', `/chambers/${chamberId}/debate`, { by: members[0], body });
    expect(meanwhile).toBe(undefined);
    expect(await textOf(before)).not.toContain(SECRET);
    expect(await faultsOf(place)).toEqual([]);
  });
}
