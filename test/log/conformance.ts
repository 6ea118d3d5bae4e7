// What the port of the log promises, of any store.
import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import type { ChamberListing, IdeaListing } from '../../projections/listings.ts';
import { phaseBy } from '../../projections/phase.ts';
import type { IdeaView } from '../../projections/views.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import type { ForumLog, Lease, LogEntry, StreamId } from '../../src/log/log.ts';
import { PAGE_BYTES } from '../../src/log/pages.ts';
import { cursorOf } from '../../src/vocabulary/events.ts';
import { PHASES } from '../../src/vocabulary/values.ts';
import { entry } from './entries.ts';

const [ANN, BOB] = ['did:key:zAnn', 'did:key:zBob'];
const NONE = new Set<StreamId>();

interface Opened {
  readonly log: ForumLog;
  /** Closes it and opens it again. */
  readonly reopen: () => Promise<ForumLog>;
}

export function describePort(open: () => Promise<Opened>): void {
  describe('the order of all chambers', () => {
    it("holds each chamber's lines in their order, from any place on, and no account's", async () => {
      const { log, reopen } = await open();
      await log.append([created(1), entry(ANN, 1), moved(1, 2), created(2)]);
      const first = await log.readAll(0, 100);
      await log.append([moved(2, 2), entry(ANN, 2), moved(1, 3)]);
      const all = await log.readAll(0, 100);
      const lines = all.ndjson.toString().split('\n').slice(0, -1);
      expect([first.count, all.count, lines.length]).toEqual([3, 5, 5]);
      const cursors = lines.map(cursorOf);
      expect(cursors.filter((cursor) => cursor.startsWith('1:'))).toEqual(['1:1', '1:2', '1:3']);
      expect(cursors.filter((cursor) => cursor.startsWith('2:'))).toEqual(['2:1', '2:2']);
      expect(await log.lastPlace()).toBe(all.last);
      const reopened = await reopen();
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
    it('writes events that follow their streams, and returns their lines as they were written', async () => {
      const { log } = await open();
      const batch = [created(1), entry(ANN, 1), moved(1, 2), moved(1, 3), created(2), moved(2, 2), entry(ANN, 2)];
      expect(await log.append(batch)).toEqual(NONE);
      expect(await log.append([moved(1, 4), entry(BOB, 1)])).toEqual(NONE);
      expect(await heads(log, [1, 2, 3, ANN, BOB])).toEqual([4, 2, 0, 2, 1]);
      const lines = batch.filter(({ stream }) => stream === 1).map(({ line }) => `${Buffer.from(line)}\n`);
      expect((await log.readPage(1, 0, 3)).ndjson.toString()).toBe(lines.join(''));
    });

    it.each<[string, readonly LogEntry[], readonly StreamId[]]>([
      ['an event that is there already', [moved(1, 2)], [1]],
      ['an event after a gap', [moved(1, 5)], [1]],
      ['the first event of a chamber after a gap', [entry(ANN, 3)], [ANN]],
      ['several events of which the first is there', [moved(1, 2), moved(1, 3), moved(1, 4)], [1]],
      ['two streams beside one that follows', [moved(1, 2), moved(2, 2), entry(BOB, 2)], [1, BOB]],
    ])('writes nothing of a stream for %s, and everything of the others', async (_, batch, conflicts) => {
      const { log } = await open();
      await log.append([created(1), moved(1, 2), moved(1, 3), created(2), entry(ANN, 1)]);
      expect(await log.append(batch)).toEqual(new Set(conflicts));
      const isWritten = !conflicts.includes(2) && batch.some(({ stream }) => stream === 2);
      expect(await heads(log, [1, 2, ANN, BOB])).toEqual([3, isWritten ? 2 : 1, 1, 0]);
    });

    it('writes rows of all tables at once, with e-mail addresses and without', async () => {
      const { log } = await open();
      const batch = (chamberId: number, account: number): readonly LogEntry[] => {
        const member = { did: ANN, turnOrder: 0, hasCommitted: false, hasRevealed: false };
        const listings = [
          listing(chamberId),
          idea(chamberId, 1, 'ABC', null),
          { table: 'members', chamberId, ...member } as const,
          { table: 'turns', chamberId, turn: { phase: 'DEBATE', turnOrder: 0, since: 1 } } as const,
        ];
        const first = entry(chamberId, 1, { listings, snapshot: snapshot(1) });
        return [first, moved(chamberId, 2), entry(ANN, account)];
      };
      const registration = (eventId: number, operatorEmail?: string) => {
        return { did: ANN, eventId, signature: `${eventId}`.repeat(32), operatorEmail };
      };
      expect(await log.append(batch(1, 1), [registration(1)])).toEqual(NONE);
      expect(await log.append(batch(2, 2), [registration(2, 'ann@example.org')])).toEqual(NONE);
      expect(await log.append(batch(2, 3), [registration(3)])).toEqual(new Set([2]));
      expect(await log.append(batch(3, 4), [registration(4)])).toEqual(NONE);
      expect(await log.append(batch(4, 5), [registration(5, 'bob@example.org')])).toEqual(NONE);
      expect(await log.operatorEmail(ANN)).toBe('bob@example.org');
      expect(await heads(log, [1, 2, 3, 4, ANN])).toEqual([2, 2, 2, 2, 5]);
    });

    it('writes no derived row, snapshot, contact or registration of a stream in conflict', async () => {
      const { log } = await open();
      const registration = { did: ANN, eventId: 1, signature: 'h'.repeat(32), operatorEmail: 'new@example.org' };
      await log.append(
        [created(1), entry(ANN, 1)],
        [{ ...registration, signature: null, operatorEmail: 'ann@example.org' }],
      );
      const listings = [listing(1, { name: 'Changed' }), idea(1, 1, 'ABC', null)];
      const lost = [entry(1, 1, { listings, snapshot: snapshot(1) }), entry(ANN, 1)];
      expect(await log.append(lost, [registration])).toEqual(new Set([1, ANN]));
      expect((await log.listChambers(everything)).map(({ name }) => name)).toEqual(['Chamber 1']);
      expect([await log.findIdea('ABC', 1), await log.readSnapshot(1)]).toEqual([undefined, undefined]);
      expect(await log.operatorEmail(ANN)).toBe('ann@example.org');
      expect((await log.lookUp([], [registration.signature])).found.size).toBe(0);
    });
  });

  describe('a lease', () => {
    it('is held soon where no other process wants it, again after a reopening, and lets its holder append', async () => {
      const { log, reopen } = await open();
      const lease = log.lease('work');
      const isHeld = (one: Lease) => vi.waitFor(() => expect(one.token).toBeDefined(), { timeout: 15_000 });
      await isHeld(lease);
      expect(await log.append([entry(1, 1, { lease: lease.token }), entry(1, 2, { lease: lease.token })])).toEqual(
        NONE,
      );
      await lease.release();
      const reopened = await reopen();
      const again = reopened.lease('work');
      await isHeld(again);
      expect(await reopened.append([entry(1, 3, { lease: again.token }), entry(ANN, 1)])).toEqual(NONE);
    });
  });

  describe('look-ups', () => {
    it('find heads, the highest chamber, and lines by signature', async () => {
      const { log } = await open();
      const [first, second] = [created(1), entry(ANN, 1)];
      await log.append([first, second, created(2)]);
      const keys = [first.signature, second.signature, 's'.repeat(72)] as string[];
      const lines = [first, second].map(({ signature, line }) => [signature, Buffer.from(line).toString()] as const);
      const lastEventIds = new Map<StreamId, number>([
        [1, 1],
        [ANN, 1],
        [9, 0],
      ]);
      expect(await log.lookUp([1, ANN, 9], keys)).toEqual({
        lastEventIds,
        lastChamberId: 2,
        found: new Map(lines as never),
      });
      expect(await log.lookUp([], [])).toEqual({ lastEventIds: new Map(), lastChamberId: 2, found: new Map() });
    });

    it('find the line of a registration by the hash of its signature, also if it changed nothing', async () => {
      const { log } = await open();
      const [first, again] = ['a'.repeat(32), 'b'.repeat(32)];
      const account = entry(ANN, 1, { signature: null });
      await log.append([account], [{ did: ANN, eventId: 1, signature: first, operatorEmail: undefined }]);
      expect(
        await log.append([], [{ did: ANN, eventId: 1, signature: again, operatorEmail: 'a\0@example.org' }]),
      ).toEqual(NONE);
      const line = Buffer.from(account.line).toString();
      expect((await log.lookUp([], [first, again])).found).toEqual(
        new Map([
          [first, line],
          [again, line],
        ]),
      );
      expect([await log.operatorEmail(ANN), await log.operatorEmail(BOB)]).toEqual(['a\0@example.org', undefined]);
    });
  });

  describe('pages', () => {
    it('hold the lines after the cursor, up to the limit', async () => {
      const { log } = await open();
      await log.append([created(1), moved(1, 2), moved(1, 3)]);
      const counts = [
        [0, 9],
        [1, 1],
        [1, 9],
        [3, 9],
        [99, 9],
      ].map(([after = 0, limit = 0]) => log.readPage(1, after, limit));
      expect((await Promise.all(counts)).map(({ count }) => count)).toEqual([3, 1, 2, 0, 0]);
      expect((await log.readPage(7, 0, 9)).count).toBe(0);
    });

    it('end with the line that fills them', async () => {
      const { log } = await open();
      const line = Buffer.alloc(PAGE_BYTES / 2, 'x');
      await log.append([created(1), ...[2, 3, 4, 5].map((eventId) => entry(1, eventId, { line }))]);
      expect([(await log.readPage(1, 1, 9)).count, (await log.readPage(1, 0, 9)).count]).toEqual([2, 3]);
    });
  });

  it('returns the nodes of the tree that were written beside a line', async () => {
    const { log } = await open();
    const hashes = ['a', 'b'].map((text) => leafHash(Buffer.from(text)));
    await log.append([created(1), entry(1, 2, { nodes: Buffer.concat(hashes) })]);
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
  ])('keeps the latest snapshot of %s', async (_, stream, other) => {
    const { log } = await open();
    await log.append([stream === 1 ? created(1) : entry(ANN, 1), entry(stream, 2, { snapshot: snapshot(2) })]);
    expect(await log.readSnapshot(stream)).toEqual(snapshot(2));
    await log.writeSnapshot(stream, snapshot(1));
    expect(await log.readSnapshot(stream)).toEqual(snapshot(2));
    await log.writeSnapshot(stream, snapshot(3));
    expect(await log.readSnapshot(stream)).toEqual(snapshot(3));
    await log.dropSnapshot(stream);
    expect([await log.readSnapshot(stream), await log.readSnapshot(other)]).toEqual([undefined, undefined]);
  });

  describe('lists', () => {
    it('of chambers are right in every phase at every moment', async () => {
      const { log } = await open();
      const rows = Array.from({ length: 12 }, (_, index) => listing(index + 1, { isCommitted: index % 5 === 4 }));
      await log.append(
        rows.map((row) => entry(row.chamberId, 1, { at: 1, listings: [{ ...row, isCommitted: false }] })),
      );
      const isCommitted = rows.filter((row) => row.isCommitted);
      await log.append(isCommitted.map((row) => entry(row.chamberId, 2, { at: 1, listings: [row] })));
      for (let now = 1; now < 90; now += 4) {
        for (const phase of PHASES) {
          const right = rows
            .filter(({ deadlines, isCommitted }) => phaseBy(deadlines, isCommitted, now) === phase)
            .reverse();
          expect(await log.listChambers({ phase, before: undefined, limit: 99, now })).toEqual(right);
          const page = right.filter(({ chamberId }) => chamberId < 9).slice(0, 2);
          expect(await log.listChambers({ phase, before: 9, limit: 2, now })).toEqual(page);
        }
      }
    });

    it('of chambers hold the latest row of each, newest first', async () => {
      const { log } = await open();
      await log.append([created(1), created(2), entry(1, 2, { listings: [listing(1, { memberCount: 1 })] })]);
      await log.append([entry(1, 3, { listings: [listing(1, { memberCount: 2 })] })]);
      expect(await log.listChambers(everything)).toEqual([listing(2), listing(1, { memberCount: 2 })]);
      expect(await log.listChambers({ ...everything, before: 2 })).toEqual([listing(1, { memberCount: 2 })]);
    });

    it('of work for the relayer follow the deadlines', async () => {
      const { log } = await open();
      const rows = [3, 1, 2].map((step, index) =>
        listing(index + 1, { deadlines: deadlines(step), isSettled: index === 2 }),
      );
      await log.append(rows.map((row) => entry(row.chamberId, 1, { listings: [row] })));
      expect(await log.listUnsettled(1_000, 9)).toEqual([2, 1]);
      expect(await log.listUnsettled(rows[1]?.deadlines.allocateRevealDeadline as number, 9)).toEqual([2]);
      expect([await log.listUnsettled(1_000, 1), await log.listSettled(9)]).toEqual([[2], [3]]);
    });

    it('of memberships, members and records of an agent follow the rows of its chambers', async () => {
      const { log } = await open();
      const member = (chamberId: number, did: string, turnOrder: number | null, changes = {}) =>
        ({ table: 'members', chamberId, did, turnOrder, hasCommitted: false, hasRevealed: false, ...changes }) as const;
      const turn = { phase: 'DEBATE', turnOrder: 1, since: 7 } as const;
      const rows = [1, 2, 3].map((id) =>
        entry(id, 1, { listings: [listing(id), member(id, ANN, id === 3 ? null : 0)] }),
      );
      await log.append(rows);
      const joined = [listing(1), member(1, BOB, 1), member(1, ANN, 0, { hasCommitted: true })];
      await log.append([
        entry(1, 2, { listings: joined }),
        entry(1, 3, { listings: [{ table: 'turns', chamberId: 1, turn }] }),
      ]);
      const open3 = {
        chamber: openListing(3),
        member: { turnOrder: null, hasCommitted: false, hasRevealed: false },
        turn: null,
        lastEventId: 1,
      };
      const open1 = {
        chamber: openListing(1),
        member: { turnOrder: 0, hasCommitted: true, hasRevealed: false },
        turn,
        lastEventId: 3,
      };
      await log.append([entry(2, 2, { listings: [listing(2, { isCommitted: true })] })]);
      expect(await log.listMemberships(ANN, 9)).toMatchObject([open3, open1]);
      expect(await log.listMemberships(ANN, 1)).toMatchObject([open3]);
      await log.append([entry(3, 2, { listings: [listing(3, { memberCount: 1 })] }), entry(1, 4)]);
      expect(await log.listMemberships(ANN, 9)).toMatchObject([
        { ...open3, chamber: { ...open3.chamber, memberCount: 1 }, lastEventId: 2 },
        { ...open1, lastEventId: 4 },
      ]);
      await log.append([entry(3, 3, { listings: [member(3, ANN, 0, { hasCommitted: true })] })]);
      const [own3] = await log.listMemberships(ANN, 9);
      expect(own3).toMatchObject({ member: { turnOrder: 0, hasCommitted: true }, lastEventId: 3 });
      await log.append([entry(3, 4, { listings: [listing(3, { isCommitted: true })] })]);
      expect(await log.listMemberships(ANN, 9)).toMatchObject([{ ...open1, lastEventId: 4 }]);
      const chambersOf = (before?: number) => log.listChambersOf(ANN, { before, limit: 9 });
      expect((await chambersOf()).map(({ chamberId }) => chamberId)).toEqual([3, 2, 1]);
      expect((await chambersOf(2)).map(({ chamberId }) => chamberId)).toEqual([1]);
      const seats = [
        [1, 2],
        [1, 1],
        [3, null],
        [1, 0],
      ] as const;
      expect(await log.listMembersAt(seats)).toEqual([null, BOB, null, ANN]);
      await log.append([entry(1, 5, { listings: [idea(1, 5, 'SUN', '2030-01-01T00:00:00.000Z')] })]);
      expect(await log.agentRecord(ANN)).toEqual({ chambers: { count: 3, newest: 3 }, proposed: 1, graduated: 1 });
      expect(await log.agentRecord('did:key:zCyd')).toEqual({
        chambers: { count: 0, newest: null },
        proposed: 0,
        graduated: 0,
      });
    });

    it('count the open chambers of a creator up to a limit', async () => {
      const { log } = await open();
      await log.append([1, 2, 3, 4].map((id) => entry(id, 1, { listings: [listing(id, { isCommitted: id === 4 })] })));
      const counts = [log.countOpenChambers(ANN, 9), log.countOpenChambers(ANN, 2), log.countOpenChambers(BOB, 9)];
      expect(await Promise.all(counts)).toEqual([3, 2, 0]);
    });
  });

  it('finds ideas by ticker in any case: a graduated one, then the newest', async () => {
    const { log } = await open();
    const [old, later, token] = [
      idea(1, 5, 'Sun', null),
      idea(2, 9, 'SUN', null),
      idea(2, 1, 'SEA', '2030-01-01T00:00:00.000Z'),
    ];
    await log.append([created(1), created(2), entry(1, 2, { listings: [old] }), entry(2, 2, { listings: [later] })]);
    const found = async (ticker: string, chamberId?: number) => (await log.findIdea(ticker, chamberId))?.chamberId;
    expect([await found('sun'), await found('sUN', 1), await found('sun', 3), await found('s\0n')]).toEqual([
      2,
      1,
      undefined,
      undefined,
    ]);
    const graduated = idea(1, 5, 'Sun', '2030-01-02T00:00:00.000Z');
    await log.append([entry(1, 3, { listings: [graduated] }), entry(2, 3, { listings: [token] })]);
    const listed = [
      await log.listGraduatedIdeas({ limit: 9 }),
      await log.listGraduatedIdeas({ limit: 9, after: graduated.idea }),
    ];
    expect([await found('sun'), listed]).toEqual([1, [[graduated.idea, token.idea], [token.idea]]]);
  });

  it('keeps everything, its id, its clock and the first value of a fact over a restart', async () => {
    const { log, reopen } = await open();
    const first = created(1);
    await log.append([first, entry(ANN, 1), entry(ANN, 2)]);
    expect(await log.recall('chain_id')).toBeUndefined();
    await log.remember('chain_id', '31337');
    await log.remember('chain_id', '1');
    const again = await reopen();
    expect([again.logId, again.lastAt, await again.recall('chain_id')]).toEqual([log.logId, 2, '31337']);
    expect(await again.lookUp([1], [first.signature as string])).toMatchObject({
      lastChamberId: 1,
      lastEventIds: new Map([[1, 1]]),
    });
    await again.persistClock(90_000);
    expect([again.lastAt, (await reopen()).lastAt]).toEqual([90_000, 90_000]);
  });
}

/** What a membership shows of a chamber. */
function openListing(id: number) {
  const { chamberId, name, deadlines, memberCount, turnSeconds, maxMembers } = listing(id);
  return { chamberId, name, deadlines, memberCount, turnSeconds, maxMembers };
}

async function heads(log: ForumLog, streams: readonly StreamId[]): Promise<readonly number[]> {
  const found = await Promise.all(streams.map((stream) => log.lastEventId(stream)));
  const { lastEventIds } = await log.lookUp(streams, []);
  expect(streams.map((stream) => lastEventIds.get(stream))).toEqual(found);
  return found;
}

function created(chamberId: number): LogEntry {
  return entry(chamberId, 1, { listings: [listing(chamberId)] });
}

function moved(chamberId: number, eventId: number): LogEntry {
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

function listing(chamberId: number, changes: Partial<ChamberListing> = {}): ChamberListing {
  const usual = {
    table: 'chambers',
    name: `Chamber ${chamberId}`,
    creatorDid: ANN,
    memberCount: 0,
    turnSeconds: null,
    maxMembers: null,
  } as const;
  return { ...usual, chamberId, deadlines: deadlines(chamberId), isCommitted: false, isSettled: false, ...changes };
}

function deadlines(step: number): ChamberListing['deadlines'] {
  return {
    lobbyDeadline: 2 * step,
    proposalDeadline: 3 * step,
    debateDeadline: 3 * step + (step % 3),
    allocateCommitDeadline: 5 * step,
    allocateRevealDeadline: 6 * step,
  };
}

function idea(chamberId: number, proposedAt: number, ticker: string, graduatedAt: string | null): IdeaListing {
  const view = { chamberId, slot: 0, ticker, graduatedAt, creatorDid: ANN, name: 'Idea \0' };
  return { table: 'ideas', proposedAt, idea: view as unknown as IdeaView };
}
