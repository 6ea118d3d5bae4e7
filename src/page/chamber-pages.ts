// Renders the page of a chamber once for all readers: the view only when its contents change, and the page around it, which contains the
// time, at most once a second.
import type { ChamberState } from '../../projections/chamber.ts';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { turnAt } from '../../projections/turn.ts';
import type { Forum } from '../forum/forum.ts';
import { toHtml } from '../html/element.ts';
import type { OpenCache, ResponseCache, SharedBody } from '../html/response-cache.ts';
import { readPages } from '../log/pages.ts';
import { type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { Assets } from './assets.ts';
import type { ChamberModel } from './chamber-model.ts';
import { chamberView } from './chamber-view.ts';
import { pageHtml } from './document.ts';
import { eventsThatFit } from './transcript-view.ts';

/** The maximum number of events in the transcript for browsers without scripts; the script reads the whole log. */
const EVENTS_RENDERED_MAX = 100;
const SECOND_MS = 1_000;

interface Snapshot {
  readonly state: ChamberState;
  readonly now: Millis;
  readonly relayerProblem: string | undefined;
}

/** Returns a function that renders the page of a chamber. The function throws FORUM_ERR_NOT_FOUND. */
export function chamberPages(forum: Forum, asset: Assets['pathOf'], responses: ResponseCache) {
  return async (id: string, relayerProblem: string | undefined): Promise<SharedBody> => {
    const cache = responses.open();
    const { state } = await forum.findChamber(id);
    const snapshot = { state, now: forum.now(), relayerProblem };
    const key = keyOf(snapshot);
    const second = Math.floor(snapshot.now / SECOND_MS);
    return await cache.body(['page', second, key], () => render(snapshot, key, cache));
  };

  async function render(snapshot: Snapshot, key: string, cache: OpenCache): Promise<string> {
    const { state, now, relayerProblem } = snapshot;
    const { chamberId, lastEventId, name, creatorDid, members } = state;
    const accounts = await accountsOf(forum, [creatorDid, ...members]);
    const [labels, retired] = [JSON.stringify([...accounts.labels]), JSON.stringify([...accounts.retired])];
    const makeView = () => renderView(forum, { ...snapshot, ...accounts });
    const view = (await cache.body(['view', key, labels, retired], makeView)).bytes.toString();
    const attributes = {
      'data-chamber': chamberId,
      'data-now': now,
      'data-events': lastEventId,
      'data-labels': labels,
      'data-retired': retired,
      'data-problem': relayerProblem,
    };
    const title = `${name} · Chamber ${chamberId}`;
    const live = { tag: 'live-chamber', attributes };
    return pageHtml({ title, base: '../', view, live, asset });
  }
}

async function renderView(
  forum: Forum,
  { state, now, labels, retired, relayerProblem }: Snapshot & Accounts,
): Promise<string> {
  const { chamberId, lastEventId } = state;
  const lines: string[] = [];
  const after = Math.max(0, lastEventId - EVENTS_RENDERED_MAX);
  const range = { stream: chamberId, after, until: lastEventId, lane: 'foreground' } as const;
  for await (const page of readPages(forum.store.log, range)) {
    lines.push(...page.ndjson.toString().trimEnd().split('\n'));
  }
  return toHtml(chamberView({ state, events: eventsThatFit(lines), now, labels, retired, relayerProblem }));
}

async function accountsOf(forum: Forum, dids: readonly string[]): Promise<Accounts> {
  const accounts = await Promise.all(dids.map((did) => forum.account(did)));
  const states = accounts.flatMap((each) => (each === undefined ? [] : [each.state]));
  return {
    labels: new Map(states.flatMap(({ did, label }) => (label ? [[did, label]] : []))),
    retired: new Set(states.flatMap(({ did, retirement }) => (retirement === null ? [] : [did]))),
  };
}

type Accounts = Pick<ChamberModel, 'labels' | 'retired'>;

/** Returns a key of everything that the view depends on besides labels and retirements. The view depends on the time only by phase, turn and day. */
function keyOf({ state, now, relayerProblem = '' }: Snapshot): string {
  const turn = turnAt(state, now);
  const day = toTimestamp(now).slice(0, 'YYYY-MM-DD'.length);
  const time = [phaseAt(state, now), isClosed(state, now), turn?.turnOrder, turn?.endsAt, day];
  return [state.chamberId, state.lastEventId, ...time, relayerProblem].join(' ');
}
