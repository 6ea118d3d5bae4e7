// <live-list>: the list of chambers, refreshed every few seconds while the page is visible.
import type { ListedChamber } from '../../../projections/views.ts';
import { listView } from '../list-view.ts';
import { Drawing } from './drawing.ts';
import { patchChildren } from './patch.ts';
import { ServerClock } from './server-clock.ts';

const REFRESH_MILLIS = 3_000;
const TICK_MILLIS = 1_000;

export class LiveList extends HTMLElement {
  readonly #ended = new AbortController();
  #chambers: readonly ListedChamber[] | undefined;
  #search = '';

  connectedCallback(): void {
    const { base = './', before, limit = '', now = '' } = this.dataset;
    const clock = new ServerClock(Number(now));
    const address = `${base}chambers?ends=1&limit=${limit}${before === undefined ? '' : `&before=${before}`}`;
    const drawing = new Drawing(() => {
      if (this.#chambers === undefined) return;
      const hasMore = this.#chambers.length === Number(limit);
      const model = { chambers: this.#chambers, now: clock.now(), isLive: true, search: this.#search, hasMore };
      patchChildren(this, [listView(model)]);
    });
    const render = () => drawing.schedule();
    const refresh = async () => {
      if (document.hidden && this.#chambers !== undefined) return;
      const response = await fetch(address, { headers: { accept: 'application/json' } });
      if (response.ok) this.#chambers = (await response.json()) as readonly ListedChamber[];
      render();
    };
    // After a failure, the next refresh tries again.
    const attempt = () => {
      refresh().catch(() => {});
    };
    this.addEventListener('input', ({ target }) => {
      if (target instanceof HTMLInputElement && target.type === 'search') this.#search = target.value;
      render();
    });
    const { signal } = this.#ended;
    drawing.watch(this, signal);
    const timers = [setInterval(render, TICK_MILLIS), setInterval(attempt, REFRESH_MILLIS)];
    signal.addEventListener('abort', () => timers.forEach(clearInterval));
    document.addEventListener('visibilitychange', attempt, { signal });
    attempt();
  }

  disconnectedCallback(): void {
    this.#ended.abort();
  }
}
