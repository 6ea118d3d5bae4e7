// The contract that every store's ports must fulfil.
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ChamberListing, IdeaListing } from '../../projections/listings.ts';
import { phaseBy } from '../../projections/phase.ts';
import { NO_TURNS } from '../../projections/turn.ts';
import type { IdeaView } from '../../projections/views.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import { ALL_CHAMBERS, type EventLog, type LogEntry } from '../../src/log/log.ts';
import { PAGE_BYTES } from '../../src/log/pages.ts';
import { type Lease, SOLE_LEASE, type Store } from '../../src/log/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { ENTRIES } from '../../src/tlog/tile.ts';
import { cursorOf } from '../../src/vocabulary/events.ts';
import { PHASES } from '../../src/vocabulary/values.ts';
import { eventually } from '../kit/until.ts';
import { created, deadlines, entry, listing, NONE, newSignatureKey, report } from './entries.ts';

const [ANN, BOB] = ['did:key:zAnn', 'did:key:zBob'];

interface Opened {
  readonly store: Store;
  /** Closes the store and opens it again. */
  readonly reopen: () => Promise<Store>;
}

export function describePort(open: () => Promise<Opened>): void {
  describe('the order of all chambers', () => {
    it("the order of all chambers contains each chamber's lines in order, from any place on, without accounts", async () => {
      const { store, reopen } = await open();
      const { log } = store;
      await log.append({ entries: [created(1), entry(ANN, 1), follows(1, 2), created(2)] });
      const first = await log.readAll(0, 100);
      await log.append({ entries: [follows(2, 2), entry(ANN, 2), follows(1, 3)] });
      const all = await log.readAll(0, 100);
      const lines = all.ndjson.toString().split('\n').slice(0, -1);
      expect([first.count, all.count, lines.length]).toEqual([3, 5, 5]);
      const cursors = lines.map(cursorOf);
      expect(cursors.filter((cursor) => cursor.startsWith('1:'))).toEqual(['1:1', '1:2', '1:3']);
      expect(cursors.filter((cursor) => cursor.startsWith('2:'))).toEqual(['2:1', '2:2']);
      expect(await log.lastPlace()).toBe(all.last);
      const { log: reopened } = await reopen();
      for (const [index, cursor] of cursors.entries()) {
        const [chamberId, eventId] = cursor.split(':').map(Number);
        const place = (await reopened.placeOf(chamberId ?? 0, eventId ?? 0)) ?? Number.NaN;
        const rest = await reopened.readAll(place, 100);
        expect(rest.ndjson.toString()).toBe(
          lines
            .slice(index + 1)
            .map((line) => `${line}\n`)
            .join(''),
        );
      }
      expect(await reopened.placeOf(1, 4)).toBe(undefined);
      expect((await reopened.readAll(all.last, 100)).last).toBe(all.last);
    });
  });

  describe('append', () => {
    it('append writes events that follow their streams, and reads return the same bytes', async () => {
      const { log } = (await open()).store;
      const batch = [created(1), entry(ANN, 1), follows(1, 2), follows(1, 3), created(2), follows(2, 2), entry(ANN, 2)];
      expect(await log.append({ entries: batch })).toEqual(NONE);
      expect(await log.append({ entries: [follows(1, 4), entry(BOB, 1)] })).toEqual(NONE);
      expect(await heads(log, [1, 2, 3, ANN, BOB])).toEqual([4, 2, 0, 2, 1]);
      const lines = batch.filter(({ stream }) => stream === 1).map(({ line }) => `${Buffer.from(line)}\n`);
      expect((await log.readPage(1, 0, 3)).ndjson.toString()).toBe(lines.join(''));
    });

    it.each<[string, readonly LogEntry[], readonly StreamId[]]>([
      ['an existing event', [follows(1, 2)], [1]],
      ['an event after a gap', [follows(1, 5)], [1]],
      ['the first event of an account after a gap', [entry(ANN, 3)], [ANN]],
      ['several events of which the first exists', [follows(1, 2), follows(1, 3), follows(1, 4)], [1]],
      ['two streams without their next event', [follows(1, 2), follows(2, 2), entry(BOB, 2)], [1, BOB]],
    ])('append skips a stream with %s, writes the others, and reports its head', async (_, batch, lost) => {
      const { log } = (await open()).store;
      await log.append({ entries: [created(1), follows(1, 2), follows(1, 3), created(2), entry(ANN, 1)] });
      const before = new Map<StreamId, number>([
        [1, 3],
        [2, 1],
        [ANN, 1],
        [BOB, 0],
      ]);
      const conflicts = lost.map((stream) => [stream, before.get(stream) as number] as const);
      expect(await log.append({ entries: batch })).toEqual(report(...conflicts));
      const isWritten = !lost.includes(2) && batch.some(({ stream }) => stream === 2);
      expect(await heads(log, [1, 2, ANN, BOB])).toEqual([3, isWritten ? 2 : 1, 1, 0]);
    });

    it('append skips and reports a creation that does not follow the highest chamber', async () => {
      const { log } = (await open()).store;
      expect(await log.append({ entries: [created(2)] })).toEqual(report([2, 0], [ALL_CHAMBERS, 0]));
      expect(await log.append({ entries: [created(1), created(2), follows(2, 2), entry(ANN, 1)] })).toEqual(NONE);
      expect(await log.append({ entries: [created(4), entry(ANN, 2)] })).toEqual(report([4, 0], [ALL_CHAMBERS, 2]));
      expect(await log.append({ entries: [created(2), entry(ANN, 3)] })).toEqual(report([2, 2], [ALL_CHAMBERS, 2]));
      expect(await heads(log, [1, 2, 4, ANN, ALL_CHAMBERS])).toEqual([1, 2, 0, 3, 2]);
    });

    it('append reports which of the given heads have advanced, and still writes', async () => {
      const { log } = (await open()).store;
      await log.append({ entries: [created(1), follows(1, 2), created(2), entry(ANN, 1)] });
      const right = new Map<StreamId, number>([
        [1, 2],
        [2, 1],
        [ANN, 1],
        [BOB, 0],
        [7, 0],
        [ALL_CHAMBERS, 2],
      ]);
      expect(await log.append({ entries: [], heads: right })).toEqual(NONE);
      expect(
        await log.append({ entries: [follows(2, 2)], heads: new Map([...right].filter(([id]) => id !== 2)) }),
      ).toEqual(NONE);
      const wrong = new Map<StreamId, number>([
        [1, 1],
        [2, 2],
        [ANN, 3],
        [BOB, 1],
        [ALL_CHAMBERS, 1],
      ]);
      expect(await log.append({ entries: [entry('did:key:zCyd', 1)], heads: wrong })).toEqual(
        report([1, 2], [ANN, 1], [BOB, 0], [ALL_CHAMBERS, 2]),
      );
      expect(await heads(log, [1, 2, ANN, BOB, 'did:key:zCyd'])).toEqual([2, 2, 1, 0, 1]);
    });

    it('append finds the lines of signatures, with or without heads, in a batch that writes nothing', async () => {
      const { log } = (await open()).store;
      const [first, second] = [created(1), entry(ANN, 1)];
      await log.append({ entries: [first, second, created(2)] });
      const signatures = [first.signature, second.signature, 's'.repeat(72), 'h'.repeat(32)] as string[];
      const found = new Map([lineOf(first), lineOf(second)]);
      expect(await log.append({ entries: [], signatures })).toEqual({ conflicts: new Map(), found });
      const given = new Map<StreamId, number>([
        [1, 1],
        [ANN, 0],
        [9, 0],
        [ALL_CHAMBERS, 2],
      ]);
      expect(await log.append({ entries: [], heads: given, signatures })).toEqual({
        conflicts: new Map([[ANN, 1]]),
        found,
      });
      expect(await log.append({ entries: [] })).toEqual(NONE);
    });

    it('append skips a stream with a known signature in any entry, and finds its line', async () => {
      const { log } = (await open()).store;
      const known = follows(1, 2);
      await log.append({ entries: [created(1), known, created(2)] });
      const again = { signature: known.signature };
      const isFound = { conflicts: new Map([[1, 2]]), found: new Map([lineOf(known)]) };
      expect(await log.append({ entries: [entry(1, 3, again), follows(1, 4), follows(2, 2)] })).toEqual(isFound);
      expect(await log.append({ entries: [follows(1, 3), entry(1, 4, again), follows(2, 3)] })).toEqual(isFound);
      expect(await heads(log, [1, 2])).toEqual([2, 3]);
    });

    it('append skips a creation with a known signature, and finds its line', async () => {
      const { log } = (await open()).store;
      const known = created(1);
      await log.append({ entries: [known] });
      const result = await log.append({ entries: [entry(2, 1, { signature: known.signature })] });
      expect(result.found).toEqual(new Map([lineOf(known)]));
      expect([result.conflicts.get(2), result.conflicts.get(ALL_CHAMBERS)]).toEqual([0, 1]);
      expect([await log.lastEventId(2), await log.lastEventId(ALL_CHAMBERS)]).toEqual([0, 1]);
    });

    it('append finds the line of a known registration, and skips its account', async () => {
      const { log } = (await open()).store;
      const account = entry(ANN, 1, { signature: null });
      const known = { did: ANN, eventId: 1, signature: 'h'.repeat(32), operatorEmail: undefined };
      await log.append({ entries: [account], registrations: [known] });
      const found = new Map([[known.signature, lineOf(account)[1]]]);
      const again = [{ ...known, eventId: 2 }];
      const entries = [entry(ANN, 2, { signature: null }), created(1)];
      expect(await log.append({ entries, registrations: again })).toEqual({ conflicts: new Map([[ANN, 1]]), found });
      const unchanged = [{ ...known, unchangedAt: 1 }];
      expect((await log.append({ entries: [], registrations: unchanged })).found).toEqual(found);
      expect(await heads(log, [1, ANN])).toEqual([1, 1]);
    });

    it('append records a registration beside a known one of the same account', async () => {
      const { log } = (await open()).store;
      const registration = (letter: string, unchangedAt?: number) => {
        return { did: ANN, eventId: 1, signature: letter.repeat(32), operatorEmail: undefined, unchangedAt };
      };
      await log.append({ entries: [entry(ANN, 1, { signature: null })], registrations: [registration('a')] });
      const [known, another] = [registration('a', 1), registration('b', 1)];
      const heads = new Map([[ANN, 1]]);
      const result = await log.append({ entries: [], registrations: [known, another], heads });
      expect([result.conflicts.size, [...result.found.keys()]]).toEqual([0, [known.signature]]);
      expect([...(await log.find([another.signature])).keys()]).toEqual([another.signature]);
    });

    it('mayContain is true for every signature that was written, including those of registrations', async () => {
      const { store, reopen } = await open();
      const entries = Array.from({ length: 500 }, (_, index) =>
        entry(ANN, index + 1, { signature: newSignatureKey() }),
      );
      const registrations = [{ did: ANN, eventId: 1, signature: 'h'.repeat(32), operatorEmail: undefined }];
      await store.log.append({ entries, registrations });
      const signatures = [...entries.map(({ signature }) => signature as string), 'h'.repeat(32)];
      expect(signatures.filter((signature) => !store.log.mayContain(signature))).toEqual([]);
      const isNew = Array.from({ length: 500 }, newSignatureKey);
      expect(isNew.filter((signature) => store.log.mayContain(signature)).length).toBeLessThan(50);
      const { log } = await reopen();
      const { found } = await log.append({ entries: [], signatures });
      expect(found.size).toBe(signatures.length);
      expect(signatures.filter((signature) => !log.mayContain(signature))).toEqual([]);
    });

    it('append writes rows of all tables at once, with and without e-mail addresses', async () => {
      const { lists, log } = (await open()).store;
      const batch = (chamberId: number, account: number): readonly LogEntry[] => {
        const member = { did: ANN, turnOrder: 0, hasCommitted: false, hasRevealed: false };
        const listings = [
          listing(chamberId),
          idea(chamberId, 1, 'ABC', null),
          { kind: 'member', chamberId, ...member } as const,
          { kind: 'turns', chamberId, turns: { ...NO_TURNS, phase: 'DEBATE', since: 1 } } as const,
        ];
        const first = entry(chamberId, 1, { listings, snapshot: snapshot(1) });
        return [first, follows(chamberId, 2), entry(ANN, account)];
      };
      const registration = (eventId: number, operatorEmail?: string) => {
        return { did: ANN, eventId, signature: `${eventId}`.repeat(32), operatorEmail };
      };
      expect(await log.append({ entries: batch(1, 1), registrations: [registration(1)] })).toEqual(NONE);
      expect(await log.append({ entries: batch(2, 2), registrations: [registration(2, 'ann@example.org')] })).toEqual(
        NONE,
      );
      expect(await log.append({ entries: batch(2, 3), registrations: [registration(3)] })).toEqual(
        report([2, 2], [ALL_CHAMBERS, 2]),
      );
      expect(await log.append({ entries: batch(3, 4), registrations: [registration(4)] })).toEqual(NONE);
      expect(await log.append({ entries: batch(4, 5), registrations: [registration(5, 'bob@example.org')] })).toEqual(
        NONE,
      );
      expect(await lists.operatorEmail(ANN)).toBe('bob@example.org');
      expect(await heads(log, [1, 2, 3, 4, ANN])).toEqual([2, 2, 2, 2, 5]);
    });
  });

  describe('a lease', () => {
    it('a lease is acquired soon without a competitor and after a restart, and its holder may append', async () => {
      const { store, reopen } = await open();
      const isHeld = (lease: Lease) => eventually(() => expect(lease.token).toBeDefined(), 15_000);
      const lease = leaseOf(store);
      await isHeld(lease);
      const entries = [entry(1, 1, { lease: lease.token }), entry(1, 2, { lease: lease.token })];
      expect(await store.log.append({ entries })).toEqual(NONE);
      await lease.release();
      const reopened = await reopen();
      const again = leaseOf(reopened);
      await isHeld(again);
      const more = [entry(1, 3, { lease: again.token }), entry(ANN, 1)];
      expect(await reopened.log.append({ entries: more })).toEqual(NONE);
    });
  });

  describe('look-ups', () => {
    it('a look-up finds the line of a registration by the hash of its signature, even if it changed nothing', async () => {
      const { lists, log } = (await open()).store;
      const [first, again] = ['a'.repeat(32), 'b'.repeat(32)];
      const account = entry(ANN, 1, { signature: null });
      await log.append({
        entries: [account],
        registrations: [{ did: ANN, eventId: 1, signature: first, operatorEmail: undefined }],
      });
      expect(
        await log.append({
          entries: [],
          registrations: [{ did: ANN, eventId: 1, signature: again, operatorEmail: 'a\0@example.org' }],
        }),
      ).toEqual(NONE);
      const line = Buffer.from(account.line).toString();
      expect((await log.append({ entries: [], signatures: [first, again] })).found).toEqual(
        new Map([
          [first, line],
          [again, line],
        ]),
      );
      expect([await lists.operatorEmail(ANN), await lists.operatorEmail(BOB)]).toEqual(['a\0@example.org', undefined]);
    });
  });

  describe('pages', () => {
    it('a page contains the lines after the cursor, up to the limit', async () => {
      const { log } = (await open()).store;
      await log.append({ entries: [created(1), follows(1, 2), follows(1, 3)] });
      const counts = [
        [0, 9],
        [1, 1],
        [1, 9],
        [3, 9],
        [99, 9],
      ].map(([after = 0, limit = 0]) => log.readPage(1, after, limit));
      expect((await Promise.all(counts)).map(({ count }) => count)).toEqual([3, 1, 2, 0, 0]);
      const text = async (stream: StreamId, after: number) => (await log.readPage(stream, after, 9)).ndjson.toString();
      const lines = [2, 3].map((eventId) => `${follows(1, eventId).line}\n`).join('');
      expect([await text(1, 1), await text(1, 3), await text(7, 0)]).toEqual([lines, '', '']);
    });

    it('a page ends with the line that reaches its size', async () => {
      const { log } = (await open()).store;
      const line = Buffer.alloc(PAGE_BYTES / 2, 'x');
      await log.append({ entries: [created(1), ...[2, 3, 4, 5].map((eventId) => entry(1, eventId, { line }))] });
      expect([(await log.readPage(1, 1, 9)).count, (await log.readPage(1, 0, 9)).count]).toEqual([2, 3]);
    });
  });

  it('a page returns the tree nodes written with each line', async () => {
    const { log } = (await open()).store;
    const hashes = ['a', 'b'].map((text) => leafHash(Buffer.from(text)));
    await log.append({ entries: [created(1), entry(1, 2, { nodes: Buffer.concat(hashes) })] });
    const refs = [
      { eventId: 2, level: 1 },
      { eventId: 2, level: 0 },
    ];
    expect((await log.readNodes(1, refs)).map((node) => Buffer.from(node))).toEqual(
      hashes.toReversed().map((hash) => Buffer.from(hash)),
    );
  });

  it.each([
    ['a chamber', 1, 2],
    ['an account', ANN, BOB],
  ])('the store keeps the latest snapshot of %s', async (_, stream, other) => {
    const { log } = (await open()).store;
    await log.append({
      entries: [stream === 1 ? created(1) : entry(ANN, 1), entry(stream, 2, { snapshot: snapshot(2) })],
    });
    expect(await log.readSnapshot(stream)).toEqual(snapshot(2));
    await log.writeSnapshot(stream, snapshot(1), 0);
    expect(await log.readSnapshot(stream)).toEqual(snapshot(2));
    await log.writeSnapshot(stream, snapshot(3), 0);
    expect(await log.readSnapshot(stream)).toEqual(snapshot(3));
    await log.dropSnapshot(stream);
    expect([await log.readSnapshot(stream), await log.readSnapshot(other)]).toEqual([undefined, undefined]);
  });

  it('append skips snapshots, contacts and registrations of a stream in conflict', async () => {
    const { lists, log } = (await open()).store;
    const registration = { did: ANN, eventId: 1, signature: 'h'.repeat(32), operatorEmail: 'new@example.org' };
    await log.append({
      entries: [created(1), entry(ANN, 1)],
      registrations: [{ ...registration, signature: null, operatorEmail: 'ann@example.org' }],
    });
    const lost = [entry(1, 1, { snapshot: snapshot(1) }), entry(ANN, 1)];
    expect(await log.append({ entries: lost, registrations: [registration] })).toEqual(
      report([1, 1], [ALL_CHAMBERS, 1], [ANN, 1]),
    );
    expect(await log.readSnapshot(1)).toBeUndefined();
    expect(await lists.operatorEmail(ANN)).toBe('ann@example.org');
    expect((await log.append({ entries: [], signatures: [registration.signature] })).found.size).toBe(0);
  });

  it('the store counts the open chambers of a creator up to a limit', async () => {
    const { lists, log } = (await open()).store;
    await log.append({
      entries: [1, 2, 3, 4, 5].map((id) => {
        const creatorDid = id % 2 === 0 ? BOB : ANN;
        return entry(id, 1, { listings: [listing(id, { creatorDid, isCommitted: id === 4 })] });
      }),
    });
    const counts = [lists.countOpenChambers(ANN, 9), lists.countOpenChambers(ANN, 2), lists.countOpenChambers(BOB, 9)];
    expect(await Promise.all(counts)).toEqual([3, 2, 1]);
  });

  it('the store keeps lines, id, clock and facts across a restart; a fact keeps its first value unless replaced', async () => {
    const { store, reopen } = await open();
    const { log, lists, meta } = store;
    const first = created(1);
    const registration = { did: ANN, eventId: 1, signature: null, operatorEmail: 'ann@example.org' };
    await log.append({ entries: [first, entry(ANN, 1), entry(ANN, 2)], registrations: [registration] });
    const pages = (of: EventLog) => Promise.all([of.readPage(1, 0, 9), of.readPage(ANN, 1, 9)]);
    const before = [await pages(log), await lists.operatorEmail(ANN)];
    expect(before).toMatchObject([[{ count: 1 }, { count: 1 }], registration.operatorEmail]);
    expect(await meta.recall('chain_id')).toBeUndefined();
    await meta.remember('chain_id', '31337');
    await meta.remember('chain_id', '1');
    await meta.remember('service_keys', 'one');
    await meta.replace('service_keys', 'one', 'one two');
    await meta.replace('service_keys', 'one', 'one three');
    const again = await reopen();
    expect([await pages(again.log), await again.lists.operatorEmail(ANN)]).toEqual(before);
    expect([again.log.logId, again.meta.lastAt, await again.meta.recall('chain_id')]).toEqual([log.logId, 2, '31337']);
    expect(await again.meta.recall('service_keys')).toBe('one two');
    expect(await heads(again.log, [1, ANN, ALL_CHAMBERS])).toEqual([1, 2, 1]);
    const signatures = [first.signature as string];
    expect(await again.log.append({ entries: [], signatures })).toEqual({ ...NONE, found: new Map([lineOf(first)]) });
    await again.meta.persistClock(90_000);
    expect([again.meta.lastAt, (await reopen()).meta.lastAt]).toEqual([90_000, 90_000]);
  });
}

/** For stores that serve reads; the pipeline reads only the number of an agent's open chambers. */
export function describeLists(open: () => Promise<Opened>): void {
  describe('callbacks', () => {
    const URL_OF_ANN = 'https://ann.example/wake';

    async function withMembers() {
      const opened = await open();
      const member = { kind: 'member', hasCommitted: false, hasRevealed: false } as const;
      const [ann, bob] = [ANN, BOB].map((did, turnOrder) => ({ ...member, did, chamberId: 1, turnOrder }));
      const rows = [listing(1, { memberCount: 2 }), ann, bob].filter((row) => row !== undefined);
      await opened.store.log.append({ entries: [entry(1, 1, { listings: rows }), entry(ANN, 1)] });
      await opened.store.callbacks.put({ did: ANN, url: URL_OF_ANN, since: 7 });
      return opened;
    }

    it('callbacks survive a restart, and can be replaced and removed', async () => {
      const { store, reopen } = await withMembers();
      const first = { did: ANN, url: URL_OF_ANN, since: 7, succeededAt: null, failures: 0, last: null, removed: null };
      expect(await store.callbacks.get(ANN)).toEqual(first);
      const { callbacks } = await reopen();
      expect(await callbacks.get(ANN)).toEqual(first);
      const changed = { ...first, failures: 3, last: { at: 9, status: 500 }, succeededAt: 8 };
      await callbacks.record([changed]);
      expect(await callbacks.get(ANN)).toEqual(changed);
      await callbacks.put({ did: ANN, url: `${URL_OF_ANN}/2`, since: 10 });
      await callbacks.record([{ ...changed, failures: 4 }]);
      expect(await callbacks.get(ANN)).toEqual({ ...first, url: `${URL_OF_ANN}/2`, since: 10 });
      await callbacks.remove(ANN);
      expect(await callbacks.get(ANN)).toBeUndefined();
    });

    it('callbacks list exactly the open chambers and seats of their agents', async () => {
      const { callbacks } = (await withMembers()).store;
      expect(await callbacks.listMemberships({ did: '', chamberId: 0 }, 9)).toEqual([{ did: ANN, chamberId: 1 }]);
      expect(await callbacks.listMemberships({ did: ANN, chamberId: 1 }, 9)).toEqual([]);
      const played = await callbacks.listChambersWithTurns([1, 99]);
      expect(played.map(({ chamber, turns }) => [chamber.chamberId, turns])).toEqual([[1, null]]);
      const member = { did: ANN, turnOrder: 0, hasCommitted: false, hasRevealed: false };
      const seat = (turnOrder: number | null) => callbacks.listMembers([{ chamberId: 1, turnOrder }]);
      expect(await Promise.all([seat(0), seat(1), seat(null)])).toEqual([
        [{ chamberId: 1, member }],
        [],
        [{ chamberId: 1, member }],
      ]);
    });

    it('the signatures of callbacks are remembered until they expire', async () => {
      const { callbacks } = (await open()).store;
      const remember = (created: number, oldest: number) =>
        callbacks.remember({ key: 'k'.repeat(32), did: ANN, created }, oldest);
      expect(await remember(10, 5)).toBe(true);
      expect(await remember(10, 10)).toBe(false);
      expect(await remember(10, 11)).toBe(true);
      await callbacks.forget({ key: 'k'.repeat(32), did: ANN, created: 10 });
      expect(await remember(10, 5)).toBe(true);
    });
  });

  it('append skips derived rows of a stream in conflict', async () => {
    const { lists, log } = (await open()).store;
    await log.append({ entries: [created(1)] });
    const listings = [listing(1, { name: 'Changed' }), idea(1, 1, 'ABC', null)];
    expect((await log.append({ entries: [entry(1, 1, { listings })] })).conflicts.size).toBeGreaterThan(0);
    expect((await lists.listChambers(everything)).map(({ name }) => name)).toEqual(['Chamber 1']);
    expect(await lists.findIdea('ABC', 1)).toBeUndefined();
  });

  describe('lists', () => {
    it('lists of chambers are correct in every phase at every moment', async () => {
      const { lists, log } = (await open()).store;
      const rows = Array.from({ length: 12 }, (_, index) => listing(index + 1, { isCommitted: index % 5 === 4 }));
      await log.append({
        entries: rows.map((row) => entry(row.chamberId, 1, { at: 1, listings: [{ ...row, isCommitted: false }] })),
      });
      const isCommitted = rows.filter((row) => row.isCommitted);
      await log.append({ entries: isCommitted.map((row) => entry(row.chamberId, 2, { at: 1, listings: [row] })) });
      for (let now = 1; now < 90; now += 4) {
        for (const phase of PHASES) {
          const right = rows.filter(({ ends, isCommitted }) => phaseBy(ends, isCommitted, now) === phase).reverse();
          expect(await lists.listChambers({ phase, before: undefined, limit: 99, now })).toEqual(right);
          const page = right.filter(({ chamberId }) => chamberId < 9).slice(0, 2);
          expect(await lists.listChambers({ phase, before: 9, limit: 2, now })).toEqual(page);
        }
      }
    });

    it('lists of chambers follow phases that end early', async () => {
      const { lists, log, meta } = (await open()).store;
      const late = deadlines(10);
      const paced = { deadlines: late, rounds: { proposal: 1, debate: 2 }, movesPerTurn: 3 };
      const sooner = [late, { ...late, lobbyDeadline: 4 }, { ...late, lobbyDeadline: 4, proposalDeadline: 6 }];
      const rows = sooner.map((ends) => listing(1, { ...paced, ends }));
      const phaseOf = async (now: number) => {
        const found = PHASES.map(async (phase) => {
          const [row] = await lists.listChambers({ phase, before: undefined, limit: 9, now });
          return row === undefined ? [] : [{ phase, row }];
        });
        return (await Promise.all(found)).flat();
      };
      await log.append({ entries: [entry(1, 1, { at: 1, listings: [rows[0] as ChamberListing] })] });
      expect(await phaseOf(3)).toEqual([{ phase: 'LOBBY', row: rows[0] }]);
      await log.append({ entries: [entry(1, 2, { at: 4, listings: [rows[1] as ChamberListing] })] });
      expect(await phaseOf(4)).toEqual([{ phase: 'PROPOSAL', row: rows[1] }]);
      await meta.persistClock(5);
      await log.append({ entries: [entry(1, 3, { at: 6, listings: [rows[2] as ChamberListing] })] });
      expect(await phaseOf(6)).toEqual([{ phase: 'DEBATE', row: rows[2] }]);
      expect(await phaseOf(late.debateDeadline)).toEqual([{ phase: 'ALLOCATE_COMMIT', row: rows[2] }]);
    });

    it('lists of chambers contain the latest row of each, newest first', async () => {
      const { lists, log } = (await open()).store;
      await log.append({
        entries: [created(1), created(2), entry(1, 2, { listings: [listing(1, { memberCount: 1 })] })],
      });
      await log.append({ entries: [entry(1, 3, { listings: [listing(1, { memberCount: 2 })] })] });
      expect(await lists.listChambers(everything)).toEqual([listing(2), listing(1, { memberCount: 2 })]);
      expect(await lists.listChambers({ ...everything, before: 2 })).toEqual([listing(1, { memberCount: 2 })]);
    });

    it('lists of work for the relayer follow the deadlines', async () => {
      const { lists, log } = (await open()).store;
      const rows = [3, 1, 2].map((step, index) =>
        listing(index + 1, { deadlines: deadlines(step), ends: deadlines(step), isSettled: index === 2 }),
      );
      await log.append({ entries: rows.map((row) => entry(row.chamberId, 1, { listings: [row] })) });
      expect(await lists.listUnsettled(1_000, 9)).toEqual([2, 1]);
      expect(await lists.listUnsettled(rows[1]?.deadlines.allocateRevealDeadline as number, 9)).toEqual([2]);
      expect([await lists.listUnsettled(1_000, 1), await lists.listSettled(9)]).toEqual([[2], [3]]);
    });

    it('lists of an agent’s memberships, members and records follow the rows of its chambers', async () => {
      const { lists, log } = (await open()).store;
      const member = (chamberId: number, did: string, turnOrder: number | null, changes = {}) =>
        ({ kind: 'member', chamberId, did, turnOrder, hasCommitted: false, hasRevealed: false, ...changes }) as const;
      const turns = {
        phase: 'DEBATE',
        count: 1,
        since: 7,
        silent: 1,
        spoken: { turn: 1, moves: 2 },
        missed: [2, 1],
      } as const;
      const rows = [1, 2, 3].map((id) =>
        entry(id, 1, { listings: [listing(id), member(id, ANN, id === 3 ? null : 0)] }),
      );
      await log.append({ entries: rows });
      const joined = [listing(1), member(1, BOB, 1), member(1, ANN, 0, { hasCommitted: true })];
      await log.append({
        entries: [
          entry(1, 2, { listings: joined }),
          entry(1, 3, { listings: [{ kind: 'turns', chamberId: 1, turns }] }),
        ],
      });
      const open3 = {
        chamber: openListing(3),
        member: { turnOrder: null, hasCommitted: false, hasRevealed: false },
        turns: null,
        lastEventId: 1,
      };
      const open1 = {
        chamber: openListing(1),
        member: { turnOrder: 0, hasCommitted: true, hasRevealed: false },
        turns,
        lastEventId: 3,
      };
      await log.append({ entries: [entry(2, 2, { listings: [listing(2, { isCommitted: true })] })] });
      const earlier = await lists.listMemberships(ANN, 9);
      const copy = structuredClone(earlier);
      expect(earlier).toMatchObject([open3, open1]);
      expect(await lists.listMemberships(ANN, 1)).toMatchObject([open3]);
      await log.append({ entries: [entry(3, 2, { listings: [listing(3, { memberCount: 1 })] }), entry(1, 4)] });
      expect(await lists.listMemberships(ANN, 9)).toMatchObject([
        { ...open3, chamber: { ...open3.chamber, memberCount: 1 }, lastEventId: 2 },
        { ...open1, lastEventId: 4 },
      ]);
      await log.append({ entries: [entry(3, 3, { listings: [member(3, ANN, 0, { hasCommitted: true })] })] });
      const [own3] = await lists.listMemberships(ANN, 9);
      expect(own3).toMatchObject({ member: { turnOrder: 0, hasCommitted: true }, lastEventId: 3 });
      await log.append({ entries: [entry(3, 4, { listings: [listing(3, { isCommitted: true })] })] });
      expect(await lists.listMemberships(ANN, 9)).toMatchObject([{ ...open1, lastEventId: 4 }]);
      expect(earlier).toEqual(copy);
      const chambersOf = (before?: number) => lists.listChambersOf(ANN, { before, limit: 9 });
      expect((await chambersOf()).map(({ chamberId }) => chamberId)).toEqual([3, 2, 1]);
      expect((await chambersOf(2)).map(({ chamberId }) => chamberId)).toEqual([1]);
      const seats = [
        [1, 2],
        [1, 1],
        [3, null],
        [1, 0],
      ] as const;
      expect(await lists.listMembersAt(seats)).toEqual([null, BOB, null, ANN]);
      await log.append({ entries: [entry(1, 5, { listings: [idea(1, 5, 'SUN', '2030-01-01T00:00:00.000Z')] })] });
      expect(await lists.agentRecord(ANN)).toEqual({ chambers: { count: 3, newest: 3 }, proposed: 1, graduated: 1 });
      expect(await lists.agentRecord('did:key:zCyd')).toEqual({
        chambers: { count: 0, newest: null },
        proposed: 0,
        graduated: 0,
      });
    });
  });

  it('a search by ticker ignores case, and returns a graduated idea first, then the newest', async () => {
    const { lists, log } = (await open()).store;
    const [old, later, token] = [
      idea(1, 5, 'Sun', null),
      idea(2, 9, 'SUN', null),
      idea(2, 1, 'SEA', '2030-01-01T00:00:00.000Z'),
    ];
    await log.append({
      entries: [created(1), created(2), entry(1, 2, { listings: [old] }), entry(2, 2, { listings: [later] })],
    });
    const found = async (ticker: string, chamberId?: number) => (await lists.findIdea(ticker, chamberId))?.chamberId;
    expect([await found('sun'), await found('sUN', 1), await found('sun', 3), await found('s\0n')]).toEqual([
      2,
      1,
      undefined,
      undefined,
    ]);
    const graduated = idea(1, 5, 'Sun', '2030-01-02T00:00:00.000Z');
    await log.append({ entries: [entry(1, 3, { listings: [graduated] }), entry(2, 3, { listings: [token] })] });
    const listed = [
      await lists.listGraduatedIdeas({ limit: 9 }),
      await lists.listGraduatedIdeas({ limit: 9, after: graduated.idea }),
    ];
    expect([await found('sun'), listed]).toEqual([1, [[graduated.idea, token.idea], [token.idea]]]);
  });
}

/** For stores whose log is published; the forum neither reads nor writes the tree. */
export function describeTree(open: () => Promise<Opened>): void {
  describe('the published tree', () => {
    const tile = (bytes: number) => ({ level: 0, index: 0, bytes: new Uint8Array(bytes * 32).fill(bytes) });

    it('the published tree has a leaf for each line, including account lines, at the place of the line', async () => {
      const { store } = await open();
      const { log, tree } = store;
      const entries = [created(1), entry(ANN, 1), follows(1, 2), entry(ANN, 2, { nodes: null }), created(2)];
      for (const each of entries) await log.append({ entries: [each] });
      const leaves = Buffer.from(await tree.readLeaves(0, 10));
      expect(leaves).toHaveLength(5 * 32);
      const placed = await tree.readEvents(0, 10);
      expect(placed).toHaveLength(5);
      for (const { stream, eventId, line } of entries) {
        const place = (await log.placeOf(stream, eventId)) ?? Number.NaN;
        expect(placed[place - 1]).toEqual({ stream, eventId });
        expect(leaves.subarray(32 * (place - 1), 32 * place)).toEqual(Buffer.from(leafHash(line)));
      }
      expect(await log.lastPlace()).toBe(5);
      expect(Buffer.from(await tree.readLeaves(3, 1))).toEqual(leaves.subarray(96, 128));
      expect([await tree.readEvents(4, 10), (await tree.readLeaves(5, 10)).length]).toEqual([[placed[4]], 0]);
    });

    it('the published tree accepts only a checkpoint that follows the stored one, with its tiles', async () => {
      const { store, reopen } = await open();
      const { tree } = store;
      const lease = await held(store);
      const first = { size: 3, note: 'three' };
      expect(await tree.checkpoint()).toBeUndefined();
      expect(await tree.publish({ from: 2, checkpoint: first, tiles: [tile(3)], lease })).toBe(false);
      expect(await tree.publish({ from: 0, checkpoint: first, tiles: [tile(3)], lease })).toBe(true);
      expect(await tree.publish({ from: 0, checkpoint: { size: 4, note: 'four' }, tiles: [tile(4)], lease })).toBe(
        false,
      );
      const stored = async ({ checkpoint, readTiles }: Store['tree']) => ({
        checkpoint: await checkpoint.call(tree),
        tiles: (await readTiles([tile(0), { level: ENTRIES, index: 0 }])).map((bytes) => bytes?.length),
      });
      expect(await stored(tree)).toEqual({ checkpoint: first, tiles: [96, undefined] });
      const second = { size: 5, note: 'five' };
      const tiles = [tile(5), { level: ENTRIES, index: 0, bytes: new Uint8Array(160) } as const];
      expect(await tree.publish({ from: 3, checkpoint: second, tiles, lease })).toBe(true);
      const again = await reopen();
      expect(await again.tree.checkpoint()).toEqual(second);
      expect((await again.tree.readTiles(tiles)).map((bytes) => bytes?.length)).toEqual([160, 160]);
      expect(await again.tree.checkpoint('0'.repeat(32))).toBeUndefined();
    });

    it('the published tree accepts signatures only for the stored note', async () => {
      const { store } = await open();
      const { tree } = store;
      const checkpoint = { size: 3, note: 'three' };
      await tree.publish({ from: 0, checkpoint, tiles: [], lease: await held(store) });
      expect(await tree.replaceNote({ ...checkpoint, size: 2 }, 'two, cosigned')).toBe(false);
      expect(await tree.replaceNote(checkpoint, 'three, cosigned')).toBe(true);
      expect(await tree.replaceNote(checkpoint, 'three, cosigned again')).toBe(false);
      expect(await tree.checkpoint()).toEqual({ size: 3, note: 'three, cosigned' });
    });

    it('the published tree accepts nothing from a publisher without the lease, if several may publish', async () => {
      const { store } = await open();
      const { tree, nodes } = store;
      const publication = { from: 0, checkpoint: { size: 3, note: 'three' }, tiles: [tile(3)], lease: 'not held' };
      expect(await tree.publish(publication)).toBe(nodes === undefined);
    });
  });
}

/** Waits until the lease is acquired, and returns its token. */
async function held(store: Store): Promise<string> {
  const lease = leaseOf(store);
  return eventually(() => lease.token ?? expect.fail('the lease is not held yet'), 15_000);
}

/** A store of a single process needs no lease. */
function leaseOf({ nodes }: Store): Lease {
  return nodes?.lease('work') ?? SOLE_LEASE;
}

function lineOf({ signature, line }: LogEntry): readonly [signatureKey: string, line: string] {
  return [signature as string, Buffer.from(line).toString()];
}

/** The chamber members of a membership row. */
function openListing(id: number) {
  const { chamberId, name, deadlines, memberCount, turnSeconds, maxMembers } = listing(id);
  return { chamberId, name, deadlines, memberCount, turnSeconds, maxMembers };
}

/** The heads from a read, which must equal those that an append reports. */
async function heads(log: EventLog, streams: readonly StreamId[]): Promise<readonly number[]> {
  const found = await Promise.all(streams.map((stream) => log.lastEventId(stream)));
  const { conflicts } = await log.append({ entries: [], heads: new Map(streams.map((stream) => [stream, -1])) });
  expect(streams.map((stream) => conflicts.get(stream))).toEqual(found);
  return found;
}

function follows(chamberId: number, eventId: number): LogEntry {
  return entry(chamberId, eventId);
}

function snapshot(eventId: number) {
  return {
    eventId,
    leaf: createHash('sha256').update(String(eventId)).digest(),
    state: `{"text":"\\u0000 ${eventId}"}`,
  };
}

const everything = { phase: undefined, before: undefined, limit: 99, now: 0 };

function idea(chamberId: number, proposedAt: number, ticker: string, graduatedAt: string | null): IdeaListing {
  const stances = { for: 0, against: 0, undecided: 0, outdated: 0 };
  const text = { creatorDid: ANN, name: 'Idea \0', version: 1, withdrawn: false, stances };
  const view = { chamberId, slot: 0, ticker, graduatedAt, ...text };
  return { kind: 'idea', proposedAt, idea: view as unknown as IdeaView };
}
