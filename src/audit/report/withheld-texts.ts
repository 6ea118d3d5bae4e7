// Lists the events whose texts are withheld and whose originals were not provided.
import type { ChamberReport } from './report-types.ts';

const EVENTS_NAMED_MAX = 10;

/** The events of one stream. `stream` is empty for the only chamber of a report. */
interface Group {
  readonly stream: string;
  readonly eventIds: readonly number[];
}

/** Counts each account event once, although an account may belong to several chambers. */
interface WithheldTexts {
  readonly groups: readonly Group[];
  readonly count: number;
}

type Withheld = Pick<ChamberReport, 'chamberId' | 'withheldEvents' | 'withheldAccountEvents'>;

export function withheldIn(chambers: readonly Withheld[], isNamed = chambers.length > 1): WithheldTexts {
  const chamberGroups = chambers.map(({ chamberId, withheldEvents: eventIds = [] }) => ({
    stream: isNamed ? `chamber ${chamberId}` : '',
    eventIds,
  }));
  const accountEvents = new Map<string, Set<number>>();
  for (const { did, eventId } of chambers.flatMap(({ withheldAccountEvents = [] }) => withheldAccountEvents))
    accountEvents.set(did, (accountEvents.get(did) ?? new Set()).add(eventId));
  const accountGroups = [...accountEvents].map(([did, eventIds]) => ({
    stream: `account of ${did}`,
    eventIds: [...eventIds],
  }));
  const groups = [...chamberGroups, ...accountGroups].filter(({ eventIds }) => eventIds.length > 0);
  return { groups, count: groups.reduce((sum, { eventIds }) => sum + eventIds.length, 0) };
}

/** Returns "the texts of 3 events …", or undefined if there are none. */
export function namedTexts({ groups, count }: WithheldTexts): string | undefined {
  if (count === 0) return undefined;
  return `the texts of ${count === 1 ? '1 event' : `${count} events`}, withheld by the service (${listed(groups)})`;
}

/** Returns the first few events: "chamber 1: 2, 5; account of did:key:…: 4". */
export function listed(groups: readonly Group[]): string {
  const named: string[] = [];
  let left = EVENTS_NAMED_MAX;
  for (const { stream, eventIds } of groups) {
    if (left === 0) return `${named.join('; ')} …`;
    const shown = eventIds.slice(0, left);
    left -= shown.length;
    const ids = shown.join(', ') + (shown.length < eventIds.length ? ' …' : '');
    named.push(stream === '' ? ids : `${stream}: ${ids}`);
    if (shown.length < eventIds.length) break;
  }
  return named.join('; ');
}
