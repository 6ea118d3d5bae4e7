// <live-chamber>: follows a chamber's log, folds it, shows it as of any event, and has every line audited by a worker.
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import { chamberView } from '../chamber-view.ts';
import { type Element as Described, h } from '../element.ts';
import { type Audit, type LiveModel, verifySection } from '../live-view.ts';
import type { AuditMessage } from './audit-worker.ts';
import { followLog } from './log-stream.ts';
import { patchChildren } from './patch.ts';
import { ServerClock } from './server-clock.ts';
import { startWorker } from './start-worker.ts';

/** The chamber after a line; a line that can't be folded has no event and changes nothing. */
interface Step {
  readonly state: ChamberState | null;
  readonly event: ChamberEvent | null;
}

const TICK_MILLIS = 1_000;
const PLAY_MILLIS = 500;

export class LiveChamber extends HTMLElement {
  readonly #steps: Step[] = [];
  readonly #memos = new Map<string, Described>();
  #clock = new ServerClock(0);
  #audit: Audit = { checked: 0, results: [], failure: null };
  #broken: ReadonlySet<number> = new Set();
  /** How many events are shown; undefined: all, also those to come. */
  #shown: number | undefined;
  #player: ReturnType<typeof setInterval> | undefined;
  #isConnected = false;
  #isScheduled = false;
  /** The event of the address, until it was scrolled to. */
  #target: number | undefined;

  connectedCallback(): void {
    const { base = '../', chamber = '', now = '', worker = '' } = this.dataset;
    this.#clock = new ServerClock(Number(now));
    const address = new URL(`${base}chambers/${chamber}`, location.href).href;
    const audit = this.#startAudit(worker, { chamberId: Number(chamber), preview: `${address}/merkle-preview` });
    followLog(`${address.replace(/^http/, 'ws')}/stream`, {
      onLine: (line) => {
        this.#fold(line);
        audit(line);
        this.#schedule();
      },
      onConnection: (isConnected) => {
        this.#isConnected = isConnected;
        this.#schedule();
      },
    });
    setInterval(() => this.#schedule(), TICK_MILLIS);
    this.#target = linkedEvent();
    addEventListener('hashchange', () => {
      this.#target = linkedEvent();
      if (this.#target !== undefined && this.#target > this.#position) this.#show(this.#target);
      this.#schedule();
    });
    this.addEventListener('input', ({ target }) => {
      if (target instanceof HTMLInputElement) this.#show(Number(target.value));
    });
    this.addEventListener('click', ({ target }) => {
      const act = target instanceof Element ? target.closest<HTMLElement>('[data-act]')?.dataset['act'] : undefined;
      if (act === 'play') this.#toggle();
      if (act === 'live') this.#show(undefined);
    });
    document.addEventListener('keydown', (event) => this.#onKey(event));
  }

  get #position(): number {
    return this.#shown ?? this.#steps.length;
  }

  #fold(line: string): void {
    const state = this.#steps.at(-1)?.state ?? null;
    try {
      const event = fromLine(line) as ChamberEvent;
      this.#steps.push({ state: evolveChamber(state, event), event });
    } catch {
      this.#steps.push({ state, event: null });
    }
  }

  /** Returns what hands a line to the worker: several at once go in one message. */
  #startAudit(url: string, chamber: Omit<AuditMessage, 'lines'>): (line: string) => void {
    const worker = startWorker(url);
    let waiting: string[] = [];
    worker.onmessage = ({ data }: MessageEvent<Audit>) => {
      this.#audit = data;
      const findings = data.results.flatMap((result) => result.findings);
      this.#broken = new Set(findings.flatMap(({ eventIds }) => eventIds));
      this.#schedule();
    };
    worker.onerror = () => {
      this.#audit = { ...this.#audit, failure: 'The checks could not be run in this browser.' };
      this.#schedule();
    };
    return (line) => {
      waiting.push(line);
      if (waiting.length > 1) return;
      setTimeout(() => {
        worker.postMessage({ ...chamber, lines: waiting } satisfies AuditMessage);
        waiting = [];
      });
    };
  }

  #show(count: number | undefined): void {
    const total = this.#steps.length;
    this.#shown = count === undefined || count >= total ? undefined : Math.max(1, count);
    if (this.#shown === undefined) this.#stop();
    this.#schedule();
  }

  #toggle(): void {
    if (this.#player !== undefined) {
      this.#stop();
      return;
    }
    if (this.#shown === undefined) this.#show(1);
    this.#player = setInterval(() => this.#show(this.#position + 1), PLAY_MILLIS);
    this.#schedule();
  }

  #stop(): void {
    clearInterval(this.#player);
    this.#player = undefined;
    this.#schedule();
  }

  /** In the replay, and where nothing has the focus; the slider itself knows its keys but for the space bar. */
  #onKey(event: KeyboardEvent): void {
    const { target, key } = event;
    if (!(target instanceof Element) || event.ctrlKey || event.altKey || event.metaKey) return;
    const isInReplay = target.closest('.replay') !== null;
    const isFree = target === document.body;
    if (!isInReplay && !isFree) return;
    const isSlider = target instanceof HTMLInputElement;
    const isButton = target instanceof HTMLButtonElement;
    if (key === ' ' && !isButton) this.#toggle();
    else if (key === 'ArrowLeft' && !isSlider) this.#show(this.#position - 1);
    else if (key === 'ArrowRight' && !isSlider) this.#show(this.#position + 1);
    else if (key === 'Home' && isButton) this.#show(1);
    else if (key === 'End' && isButton) this.#show(undefined);
    else return;
    event.preventDefault();
  }

  #schedule(): void {
    // What the service rendered stays until its events are here.
    if (this.#isScheduled || this.#steps.length < Math.max(1, Number(this.dataset['events']))) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.#render();
    });
  }

  #render(): void {
    const total = this.#steps.length;
    const shown = this.#position;
    const { state = null } = this.#steps[shown - 1] ?? {};
    const live = this.#liveModel(total, shown);
    const events = this.#steps.slice(0, shown).flatMap(({ event }) => event ?? []);
    const now = shown < total && state !== null ? state.lastAt : this.#clock.now();
    try {
      if (state === null) throw new Error('the chamber was not created');
      patchChildren(this, [chamberView({ state, events, now, live })]);
    } catch {
      // Altered lines may fold into what can't be shown; the findings say why.
      const chamberId = Number(this.dataset['chamber']);
      patchChildren(this, [
        h('main', { id: 'main' }, h('h1', {}, 'This log cannot be shown'), verifySection(chamberId, live)),
      ]);
    }
    if (this.#target === undefined) return;
    document.getElementById(`e${this.#target}`)?.scrollIntoView({ block: 'center' });
    this.#target = undefined;
  }

  #liveModel(total: number, shown: number): LiveModel {
    const { checked } = this.#audit;
    return {
      total,
      shown,
      isPlaying: this.#player !== undefined,
      isConnected: this.#isConnected,
      linked: linkedEvent(),
      audit: this.#audit,
      markOf: (eventId) => (this.#broken.has(eventId) ? 'broken' : eventId <= checked ? 'verified' : 'waiting'),
      memo: (key, make) => {
        const known = this.#memos.get(key) ?? make();
        this.#memos.set(key, known);
        return known;
      },
    };
  }
}

/** 17 for an address that ends in #e17. */
function linkedEvent(): number | undefined {
  const [, digits] = /^#e(\d{1,9})$/.exec(location.hash) ?? [];
  return digits === undefined ? undefined : Number(digits);
}
