// Compares a service's responses with its lines: by a fresh fold, a root by merkletreejs, and the hash chain.
import { expect } from 'vitest';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { outcomeOf } from '../../projections/outcome.ts';
import { allocationsView, chamberView, type IdeaView, ideaViews } from '../../projections/views.ts';
import { type ChamberEvent, isMove } from '../../src/vocabulary/events.ts';
import { NO_PREVIOUS } from '../../src/vocabulary/values.ts';
import { leafOf, merkleRootOf } from './merkle.ts';
import type { TestService } from './test-service.ts';

export interface VerifiedChamber {
  readonly state: ChamberState;
  readonly lines: readonly string[];
}

/** Compares every response about the chamber, and resolves to the chamber as folded from its lines. */
export async function verifyChamber(service: TestService, chamberId: number): Promise<VerifiedChamber> {
  const lines = await service.lines(chamberId);
  const events = lines.map((line) => JSON.parse(line) as ChamberEvent);
  const state = events.reduce<ChamberState | null>(evolveChamber, null);
  if (state === null) throw new Error(`chamber ${chamberId} has no events`);
  expectSound(lines, events);
  const now = service.forum.now();
  const path = `/chambers/${chamberId}`;
  const moves = lines.slice(0, events.filter(isMove).length);
  expect(await service.must('GET', path)).toEqual(chamberView(state, now));
  expect(await service.must('GET', `${path}/ideas`)).toEqual(ideaViews(state));
  expect(await service.must('GET', `${path}/allocations`)).toEqual(allocationsView(state, now));
  const outcome = outcomeOf(state, now);
  expect(await service.request('GET', `${path}/outcome`)).toMatchObject(
    'view' in outcome
      ? { status: 200, body: outcome.view }
      : { status: 409, body: { detail: `chamber ${chamberId} is waiting for ${outcome.waitsFor}` } },
  );
  expect(await service.must('GET', `${path}/merkle-preview`)).toEqual({
    root: merkleRootOf(moves),
    eventCount: moves.length,
    asOfEventId: moves.length,
  });
  return { state, lines };
}

function expectSound(lines: readonly string[], events: readonly ChamberEvent[]): void {
  for (const [index, event] of events.entries()) {
    expect([event.eventId, event.prev]).toEqual([
      index + 1,
      index === 0 ? NO_PREVIOUS : leafOf(lines[index - 1] as string),
    ]);
    expect(event.ts >= (events[index - 1]?.ts ?? '')).toBe(true);
  }
  // No move follows a service event.
  const firstOfService = events.findIndex((event) => !isMove(event));
  if (firstOfService !== -1) expect(events.slice(firstOfService).some(isMove)).toBe(false);
}

/** Compares the lists, which come from derived tables, with the verified chambers. */
export async function verifyLists(service: TestService, chambers: readonly ChamberState[]): Promise<void> {
  const now = service.forum.now();
  const items = [...chambers].reverse().map((state) => {
    const { chamberId, phase, name, deadlines } = chamberView(state, now);
    return { chamberId, phase, name, deadlines, memberCount: state.members.length };
  });
  expect(await service.must('GET', '/chambers?limit=200')).toEqual(items);
  for (const phase of new Set(items.map((item) => item.phase))) {
    expect(await service.must('GET', `/chambers?limit=200&phase=${phase}`)).toEqual(
      items.filter((item) => item.phase === phase),
    );
  }
  // Only the list of a single chamber names the events of the versions.
  const ideas = chambers.flatMap(ideaViews).map(({ versions: _, ...idea }): IdeaView => idea);
  for (const idea of ideas) {
    expect(await service.must('GET', `/ideas/${idea.ticker}?chamberId=${idea.chamberId}`)).toEqual(idea);
  }
  const graduates: readonly IdeaView[] = await service.must('GET', '/ideas?limit=200');
  const byPlace = (a: IdeaView, b: IdeaView) => a.chamberId - b.chamberId || a.slot - b.slot;
  expect([...graduates].sort(byPlace)).toEqual(ideas.filter((idea) => idea.tokenAddress !== null).sort(byPlace));
}
