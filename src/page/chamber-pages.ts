// The pages of chambers as all their readers get them: what a chamber looks like at its head is made once, and a page with the time in it
// once a second. Responses share the bytes.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { ChamberState } from '../../projections/chamber.ts';
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { turnAt } from '../../projections/turn.ts';
import type { Forum } from '../forum/forum.ts';
import { toHtml } from '../html/element.ts';
import { readPages } from '../log/pages.ts';
import { type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { Assets } from './assets.ts';
import type { ChamberModel } from './chamber-model.ts';
import { chamberView } from './chamber-view.ts';
import { pageHtml } from './document.ts';
import { eventsThatFit } from './transcript-view.ts';

/** The events in the transcript for a browser without scripts; a script reads the whole log. */
const EVENTS_RENDERED_MAX = 100;
const SECOND_MS = 1_000;
/** The fastest: a page is read a few times. */
const LEVEL = 1;

const compress = promisify(gzip);

const encoder = new TextEncoder();

export class WholePage {
  readonly bytes: Buffer<ArrayBuffer>;
  #gzipped: Promise<Buffer<ArrayBuffer>> | undefined;

  constructor(html: string) {
    this.bytes = unpooled(encoder.encode(html));
  }

  gzipped(): Promise<Buffer<ArrayBuffer>> {
    this.#gzipped ??= compress(this.bytes, { level: LEVEL }).then(
      (bytes) => unpooled(new Uint8Array(bytes)),
      (error: unknown) => {
        // The next reader has it compressed again.
        this.#gzipped = undefined;
        throw error;
      },
    );
    return this.#gzipped;
  }
}

/** Buffer.from and zlib cut what is short from a slab of 64 KiB, which the cache would then hold as a whole. */
function unpooled({ buffer }: Uint8Array<ArrayBuffer>): Buffer<ArrayBuffer> {
  return Buffer.from(buffer);
}

interface Moment {
  readonly state: ChamberState;
  readonly now: Millis;
  readonly relayerProblem: string | undefined;
}

export class ChamberPages {
  readonly #forum: Forum;
  readonly #asset: Assets['pathOf'];
  /** The view as HTML, by all that it depends on. */
  readonly #views: LRUCache<string, string, Moment & Accounts>;
  /** The pages by the same without the labels, and by the second. */
  readonly #pages: LRUCache<string, WholePage, Moment & { readonly key: string }>;

  constructor(forum: Forum, asset: Assets['pathOf'], cacheBytesMax: number) {
    this.#forum = forum;
    this.#asset = asset;
    this.#views = new LRUCache({
      maxSize: Math.ceil(cacheBytesMax / 2),
      sizeCalculation: ({ length }, key) => length + key.length,
      fetchMethod: (_key, _stale, { context }) => this.#view(context),
      ignoreFetchAbort: true,
    });
    this.#pages = new LRUCache({
      maxSize: Math.ceil(cacheBytesMax / 2),
      // It may be compressed later, to less than this.
      sizeCalculation: ({ bytes }) => 2 * bytes.length,
      fetchMethod: (_key, _stale, { context }) => this.#page(context),
      ignoreFetchAbort: true,
    });
  }

  /** Throws FORUM_ERR_NOT_FOUND. */
  async page(id: string, relayerProblem: string | undefined): Promise<WholePage> {
    const { state } = await this.#forum.findChamber(id);
    const now = this.#forum.now();
    const key = keyOf({ state, now, relayerProblem });
    const context = { state, now, relayerProblem, key };
    return await this.#pages.forceFetch(`${Math.floor(now / SECOND_MS)} ${key}`, { context });
  }

  async #page({ state, now, relayerProblem, key }: Moment & { readonly key: string }): Promise<WholePage> {
    const { chamberId, lastEventId, name, creatorDid, members } = state;
    const accounts = await this.#accountsOf([creatorDid, ...members]);
    const [labels, retired] = [JSON.stringify([...accounts.labels]), JSON.stringify([...accounts.retired])];
    const context = { state, now, relayerProblem, ...accounts };
    const view = await this.#views.forceFetch(`${key} ${labels} ${retired}`, { context });
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
    return new WholePage(pageHtml({ title, base: '../', view, live, asset: this.#asset }));
  }

  async #view({ state, now, labels, retired, relayerProblem }: Moment & Accounts): Promise<string> {
    const { chamberId, lastEventId } = state;
    const lines: string[] = [];
    const after = Math.max(0, lastEventId - EVENTS_RENDERED_MAX);
    const range = { stream: chamberId, after, until: lastEventId, lane: 'foreground' } as const;
    for await (const page of readPages(this.#forum.store.log, range)) {
      lines.push(...page.ndjson.toString().trimEnd().split('\n'));
    }
    return toHtml(chamberView({ state, events: eventsThatFit(lines), now, labels, retired, relayerProblem }));
  }

  async #accountsOf(dids: readonly string[]): Promise<Accounts> {
    const accounts = await Promise.all(dids.map((did) => this.#forum.account(did)));
    const states = accounts.flatMap((each) => (each === undefined ? [] : [each.state]));
    return {
      labels: new Map(states.flatMap(({ did, label }) => (label ? [[did, label]] : []))),
      retired: new Set(states.flatMap(({ did, retirement }) => (retirement === null ? [] : [did]))),
    };
  }
}

/** What the agents call themselves, by DID, and those whose keys were retired. */
type Accounts = Pick<ChamberModel, 'labels' | 'retired'>;

/** All that the view of a chamber depends on besides its labels: of the time, the phase, the turn and the day. */
function keyOf({ state, now, relayerProblem = '' }: Moment): string {
  const turn = turnAt(state, now);
  const day = toTimestamp(now).slice(0, 'YYYY-MM-DD'.length);
  const time = [phaseAt(state, now), isClosed(state, now), turn?.turnOrder, turn?.endsAt, day];
  return [state.chamberId, state.lastEventId, ...time, relayerProblem].join(' ');
}
