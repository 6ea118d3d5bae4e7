import { expect, it } from 'vitest';
import type { EventIndex } from '../../../src/log/sqlite/event-index.ts';
import { Memberships } from '../../../src/log/sqlite/memberships.ts';
import { Random } from '../../kit/random.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { entry, intrude, listing, openLog } from '../entries.ts';

const AGENTS = ['did:key:zAnn', 'did:key:zBob', 'did:key:zCyd'];
const CHAMBERS = 12;
/** In how many of them an agent is at most. */
const LISTED_MAX = 8;
const EVENTS = 240;

it.each([LISTED_MAX, 1_000])(
  'lists are right after every event, with %i of 12 chambers kept in memory',
  async (kept) => {
    const path = temporaryDatabase();
    const store = openLog(path);
    const db = intrude(path);
    const heads = new Map<number, number>();
    const index = { lastEventId: (chamberId: number) => heads.get(chamberId) } as unknown as EventIndex;
    const memberships = new Memberships(db, index, kept);
    const lists = (of: Memberships) => AGENTS.map((agent) => of.list(agent, CHAMBERS));
    const random = new Random(7);
    let same = 0;
    for (let count = 0; count < EVENTS; count++) {
      const chamberId = count < CHAMBERS ? count + 1 : random.below(CHAMBERS) + 1;
      const eventId = (heads.get(chamberId) ?? 0) + 1;
      const chamber = listing(chamberId, { memberCount: eventId, isCommitted: eventId > 20 });
      const did = AGENTS[chamberId % 2 === 0 ? random.below(3) : chamberId % 3] ?? '';
      const seat = { turnOrder: null, hasCommitted: true, hasRevealed: eventId % 2 > 0 };
      const member = { kind: 'member', chamberId, did, ...seat } as const;
      const added = entry(chamberId, eventId, { listings: random.chance(0.3) ? [chamber, member] : [chamber] });
      const before = lists(memberships);
      const copies = structuredClone(before);
      expect((await store.log.append({ entries: [added] })).moved.size).toBe(0);
      heads.set(chamberId, eventId);
      memberships.forget(added);
      const after = lists(memberships);
      expect(after).toEqual(lists(new Memberships(db, index)));
      expect(before).toEqual(copies);
      same += after.filter((list, place) => list === before[place]).length;
    }
    expect(same).toBeGreaterThan(EVENTS / 2);
  },
);
