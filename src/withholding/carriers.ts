// Finds the lines that repeat a withheld text, which are withheld too: later lines of an account, the agent's joins, and records of an
// idea's deployment.
import type { ChamberState } from '../../projections/chamber.ts';
import { deploymentOf } from '../../projections/settlement.ts';
import { readPages } from '../log/pages.ts';
import type { Store } from '../log/store.ts';
import type { StreamId } from '../log/stream-id.ts';
import { type AccountEvent, type ChamberEvent, type ForumEvent, fromLine } from '../vocabulary/events.ts';
import { textsIn } from '../vocabulary/texts.ts';
import type { WithholdReason } from '../vocabulary/withheld.ts';
import type { NamedEvent } from './list.ts';

export interface ReadLine {
  /** The canonical line. */
  readonly line: string;
  readonly event: ForumEvent;
}

/** A line to withhold. */
export interface Carrier extends NamedEvent {
  readonly line: string;
  readonly reason: WithholdReason;
}

type Reader = Pick<Store, 'log' | 'lists'>;

export async function readLine({ log }: Reader, { stream, eventId }: NamedEvent): Promise<ReadLine | undefined> {
  const { ndjson, count } = await log.readPage(stream, eventId - 1, 1);
  return count === 0 ? undefined : toReadLine(ndjson.toString().trimEnd());
}

async function* linesOf({ log }: Reader, stream: StreamId, after = 0): AsyncGenerator<ReadLine> {
  const until = await log.lastEventId(stream);
  for await (const { ndjson } of readPages(log, { stream, after, until, lane: 'bulk' })) {
    for (const line of ndjson.toString().trimEnd().split('\n')) yield toReadLine(line);
  }
}

function toReadLine(line: string): ReadLine {
  return { line, event: fromLine(line) };
}

/** Whether a line contains a text to withhold. */
function holdsText({ event }: ReadLine): boolean {
  return event.withheld === undefined && textsIn(event.type, event.payload).length > 0;
}

/** A line with a text that a later, named line of the account repeats. */
export interface EarlierLine {
  readonly eventId: number;
  readonly named: number;
}

/** Finds the account's other lines that share a text with the named lines, which must not be stubs yet. */
async function linesWithTextsOf(store: Reader, did: string, named: ReadonlyMap<number, WithholdReason>) {
  const reasons = new Map<string, WithholdReason>();
  const carriers: Carrier[] = [];
  /** For each text, the first line that contains it, up to the last named line. */
  const firstWith = new Map<string, number>();
  const earlier: EarlierLine[] = [];
  const last = Math.max(0, ...named.keys());
  for await (const read of linesOf(store, did)) {
    const { event, line } = read;
    const texts = holdsText(read) ? textsOf(event) : [];
    const reason = named.get(event.eventId);
    if (reason !== undefined) for (const text of texts) reasons.set(text, reason);
    if (reason !== undefined) {
      const firsts = new Set(texts.flatMap((text) => firstWith.get(text) ?? []));
      for (const eventId of firsts) earlier.push({ eventId, named: event.eventId });
    } else if (event.eventId < last) {
      for (const text of texts) if (!reasons.has(text) && !firstWith.has(text)) firstWith.set(text, event.eventId);
    }
    const [carried] = texts.flatMap((text) => reasons.get(text) ?? []);
    if (reason === undefined && carried !== undefined)
      carriers.push({ stream: did, eventId: event.eventId, line, reason: carried });
  }
  return { later: carriers, earlier };
}

/** Returns every string in the texts of an event. */
function textsOf({ type, payload }: ForumEvent): readonly string[] {
  const members = payload as Readonly<Record<string, unknown>>;
  return textsIn(type, payload).flatMap((name) => stringsIn(members[name]));
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

/**
 * Finds the agent's joins with the label of a registration that is withheld or `named`. A join copies the label of its account at that
 * time, so the event ids suffice and the text is not needed.
 */
async function joinsOf(
  store: Reader,
  did: string,
  named: ReadonlyMap<number, WithholdReason>,
): Promise<readonly Carrier[]> {
  const labelled: { readonly eventId: number; readonly reason: WithholdReason | undefined }[] = [];
  for await (const { event } of linesOf(store, did)) {
    if (event.type !== 'agent.registered') continue;
    labelled.push({ eventId: event.eventId, reason: event.withheld?.reason ?? named.get(event.eventId) });
  }
  if (labelled.every(({ reason }) => reason === undefined)) return [];
  const carriers: Carrier[] = [];
  for await (const read of ownJoins(store, did)) {
    const { event, line } = read;
    if (event.type !== 'chamber.joined' || !holdsText(read)) continue;
    const { accountEventId = Number.POSITIVE_INFINITY } = event.payload;
    const reason = labelled.findLast(({ eventId }) => eventId <= accountEventId)?.reason;
    if (reason !== undefined) carriers.push({ stream: event.chamberId, eventId: event.eventId, line, reason });
  }
  return carriers;
}

const CHAMBERS_PER_PAGE = 200;

async function* ownJoins(store: Reader, did: string): AsyncGenerator<ReadLine> {
  for (let before: number | undefined; ; ) {
    const page = await store.lists.listChambersOf(did, { before, limit: CHAMBERS_PER_PAGE });
    for (const { chamberId } of page) {
      for await (const read of linesOf(store, chamberId)) {
        if (read.event.type !== 'chamber.joined' || read.event.did !== did) continue;
        yield read;
        break;
      }
    }
    before = page.at(-1)?.chamberId;
    if (page.length < CHAMBERS_PER_PAGE) return;
  }
}

export interface AccountCarriers {
  /** Lines to withhold together with the named ones. */
  readonly carriers: readonly Carrier[];
  /** Earlier lines, which are not withheld unless the operator names them. */
  readonly earlier: readonly EarlierLine[];
}

/** Finds the lines that repeat the texts of the named lines of an account. */
export async function accountCarriers(
  store: Reader,
  did: string,
  named: ReadonlyMap<number, WithholdReason>,
): Promise<AccountCarriers> {
  const { later, earlier } = await linesWithTextsOf(store, did, named);
  const all = new Map([...named, ...later.map(({ eventId, reason }) => [eventId, reason] as const)]);
  return { carriers: [...later, ...(await joinsOf(store, did, all))], earlier };
}

/**
 * Finds the transactions and failures of deployments of withheld ideas, after the outcome: until then, the relayer needs the transaction.
 * A failure may quote the text in any form, so it is withheld too.
 */
export async function deploymentCarriers(store: Reader, state: ChamberState): Promise<readonly Carrier[]> {
  const { chamberId, moveCount, settlement } = state;
  const reasons = new Map<string, WithholdReason>();
  for (const { ideaId, withheldTexts, versions } of state.ideas) {
    if (withheldTexts.length === 0 || deploymentOf(settlement, ideaId).outcome === null) continue;
    for (const { eventId } of versions) {
      const reason = (await readLine(store, { stream: chamberId, eventId }))?.event.withheld?.reason;
      if (reason !== undefined) reasons.set(ideaId, reason);
    }
  }
  if (reasons.size === 0) return [];
  const carriers: Carrier[] = [];
  for await (const read of linesOf(store, chamberId, moveCount)) {
    const { event, line } = read;
    const ideaId = deploymentIn(event);
    const reason = ideaId === undefined ? undefined : reasons.get(ideaId);
    if (reason === undefined || !holdsText(read)) continue;
    carriers.push({ stream: chamberId, eventId: event.eventId, line, reason });
  }
  return carriers;
}

function deploymentIn(event: AccountEvent | ChamberEvent): string | undefined {
  const isRecorded = event.type === 'relay.deploy_submitted' || event.type === 'idea.deploy_failed';
  return isRecorded ? event.payload.ideaId : undefined;
}
