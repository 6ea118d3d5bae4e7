// Tests notes with many chambers and disconnects: each connection gets each phase change once, and readers without notes get none.
// NOTES_CHAMBERS=1000 NOTES_CUTS=50 is the full size.
import { expect, it } from 'vitest';
import type { Phase } from '../../src/vocabulary/values.ts';
import { type Consumer, consume, page } from '../kit/consumers.ts';
import { Random } from '../kit/random.ts';
import { call, createChamber, newAgent, type Running, run } from '../kit/service.ts';
import { until } from '../kit/until.ts';

const { NOTES_CHAMBERS = '20', NOTES_CUTS = '10', NOTES_SEED = '1' } = process.env;
const [CHAMBERS, CUTS] = [Number(NOTES_CHAMBERS), Number(NOTES_CUTS)];
/** The moves of the creator and another member after the creation of a chamber. */
const MOVES = [
  ['creator', 'join'],
  ['other', 'join'],
  ['creator', 'start'],
  ['creator', 'pass'],
  ['other', 'pass'],
  ['creator', 'pass'],
  ['other', 'pass'],
] as const;
const PACE = { turnSeconds: 60, rounds: { proposal: 1, debate: 1 } };
const EVENTS = 1 + MOVES.length;
/** The event after which each phase begins; nobody commits. */
const BEGUN_BY: Readonly<Partial<Record<Phase, number>>> = { PROPOSAL: 4, DEBATE: 6, ALLOCATE_COMMIT: 8 };
const CHAMBERS_AT_ONCE = 20;

interface Note {
  readonly note: string;
  readonly eventId?: number;
  readonly to?: Phase;
}

/** A reader that resumes after the last event that it received. */
interface Reader {
  readonly id: number;
  readonly query: string;
  /** The messages of each connection. */
  readonly connections: Consumer[];
}

it(`each connection gets each note once: ${CHAMBERS} chambers, ${CUTS} disconnects (NOTES_SEED=${NOTES_SEED})`, {
  timeout: 30_000 + CHAMBERS * 1_000,
}, async () => {
  const random = new Random(Number(NOTES_SEED));
  const running = await run({ CHAMBERS_OPEN_PER_DID_MAX: `${CHAMBERS}` });
  const agents = { creator: await newAgent(running), other: await newAgent(running) };
  const chambers: { readonly annotated: Reader; readonly plain: Reader }[] = [];
  for (let count = 0; count < CHAMBERS; count++) {
    const id = await createChamber(running, agents.creator, PACE);
    chambers.push({ annotated: await open(running, id, '&notes=1'), plain: await open(running, id, '') });
  }
  const cutAt = Array.from({ length: CUTS }, () => ({
    chamber: random.below(CHAMBERS),
    after: random.below(MOVES.length),
  }));
  const play = async ({ annotated, plain }: (typeof chambers)[0], index: number) => {
    const cuts = cutAt.filter(({ chamber }) => chamber === index);
    for (const [done, [by, move]] of MOVES.entries()) {
      await call(running, agents[by], ['POST', `/chambers/${annotated.id}/${move}`, {}]);
      for (const { after } of cuts) if (after === done) await reopen(running, annotated);
    }
    for (const reader of [annotated, plain]) await until(() => linesOf(reader).length === EVENTS);
    await until(() => knowsTheEnd(annotated));
  };
  for (let from = 0; from < CHAMBERS; from += CHAMBERS_AT_ONCE) {
    await Promise.all(chambers.slice(from, from + CHAMBERS_AT_ONCE).map((each, index) => play(each, from + index)));
  }
  for (const { annotated, plain } of chambers) {
    expect(linesOf(annotated)).toEqual(linesOf(plain));
    const [{ lines }] = plain.connections as [Consumer];
    expect(lines).toEqual(await page(running, `/chambers/${plain.id}/events?after=0&limit=200`));
    for (const connection of annotated.connections) expectNotes(connection);
  }
});

/** Expects the notes of the connection to match its events: each change after caught-up once, and after the right event. */
function expectNotes(connection: Consumer): void {
  let isCaughtUp = false;
  const noted: Phase[] = [];
  const expected: Phase[] = [];
  let last = 0;
  for (const message of messagesOf(connection)) {
    if (message.note === 'caught-up') {
      expect({ isCaughtUp, eventId: message.eventId ?? 0 }).toEqual({
        isCaughtUp: false,
        eventId: last || message.eventId,
      });
      isCaughtUp = true;
      last = message.eventId ?? 0;
    } else if (message.note === 'phase') {
      noted.push(message.to as Phase);
      expect(message.to && BEGUN_BY[message.to], `${connection.lines}`).toBe(last);
    } else {
      last = message.eventId ?? 0;
      const begun = Object.entries(BEGUN_BY).find(([, eventId]) => eventId === last);
      if (begun !== undefined && isCaughtUp) expected.push(begun[0] as Phase);
    }
  }
  if (connection.closeCode === undefined) expect(isCaughtUp).toBe(true);
  // A cut connection may have ended between a line and its note.
  expect(expected.slice(0, noted.length)).toEqual(noted);
  expect(expected.length - noted.length).toBeLessThanOrEqual(connection.closeCode === undefined ? 0 : 1);
}

/** Whether a note on the reader's last connection announced the last phase. */
function knowsTheEnd({ connections }: Reader): boolean {
  return messagesOf(connections.at(-1)).some(
    ({ note, eventId, to }) => to === 'ALLOCATE_COMMIT' || (note === 'caught-up' && eventId === EVENTS),
  );
}

function messagesOf(connection: Consumer | undefined): readonly Note[] {
  return (connection?.lines ?? []).map((line) => JSON.parse(line));
}

function linesOf({ connections }: Reader): readonly string[] {
  return connections.flatMap(({ lines }) => lines.filter((line) => !line.startsWith('{"note"')));
}

async function open(running: Running, id: number, query: string): Promise<Reader> {
  return { id, query, connections: [await consume(running, `/chambers/${id}/stream?after=0${query}`)] };
}

async function reopen(running: Running, reader: Reader): Promise<void> {
  reader.connections.at(-1)?.socket.close();
  await reader.connections.at(-1)?.closed();
  const after = linesOf(reader).length;
  reader.connections.push(await consume(running, `/chambers/${reader.id}/stream?after=${after}${reader.query}`));
}
