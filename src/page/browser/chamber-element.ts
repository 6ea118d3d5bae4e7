// <live-chamber>: follows a chamber's log or reads a file, folds the lines, shows the chamber as of any event, and audits every line.
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { outcomeOf } from '../../../projections/outcome.ts';
import { isClosed } from '../../../projections/phase.ts';
import { h } from '../../html/element.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import { WITHOUT_CHAIN } from '../chamber-model.ts';
import { chamberView } from '../chamber-view.ts';
import { type Audit, type LiveModel, SPEEDS, verifySection } from '../live-view.ts';
import { Drawing } from './drawing.ts';
import { DrawnChunks } from './drawn-chunks.ts';
import { linkedEvent, namedChain, namedRoot, namedWitnesses } from './location.ts';
import { followLog } from './log-stream.ts';
import { patchChildren } from './patch.ts';
import { saveCheckpoint, savedCheckpoint } from './saved-checkpoint.ts';
import { ServerClock } from './server-clock.ts';
import { NOT_AUDITED, startAudit } from './start-audit.ts';

/** The part of GET /health that the page shows. */
interface Health {
  readonly chain?: { readonly relayer: { readonly reason?: string } } | null;
}

/** The chamber after a line. A line that can't be folded changes nothing. */
interface Step {
  readonly state: ChamberState | null;
  readonly eventCount: number;
}

const TICK_MILLIS = 1_000;
const HEALTH_MILLIS = 5_000;
const PLAY_MILLIS = 500;
const JUMP_FRAMES = 20;

export class LiveChamber extends HTMLElement {
  /** A file to show instead of the service's chamber. */
  file: File | undefined;
  readonly #ended = new AbortController();
  readonly #steps: Step[] = [];
  readonly #events: ChamberEvent[] = [];
  readonly #chunks = new DrawnChunks(() => this.#schedule());
  readonly #labels = new Map<string, string>();
  readonly #retired = new Set<string>();
  #clock = new ServerClock(0);
  #audit: Audit = NOT_AUDITED;
  #broken: ReadonlySet<number> = new Set();
  /** The number of events shown; undefined: all, including future ones. */
  #shown: number | undefined;
  #player: ReturnType<typeof setInterval> | undefined;
  #speed = 1;
  #isConnected = false;
  #relayerProblem: string | undefined;
  readonly #drawing = new Drawing(() => this.#render());
  /** A jump to an event takes several frames, because the chunks around the event are drawn one by one. */
  #jump: { readonly eventId: number; framesLeft: number } | undefined;

  connectedCallback(): void {
    const { now = '', labels = '[]', retired = '[]', problem } = this.dataset;
    this.#relayerProblem = problem;
    this.#clock = new ServerClock(Number(now));
    for (const [did, label] of JSON.parse(labels) as readonly [string, string][]) this.#labels.set(did, label);
    for (const did of JSON.parse(retired) as readonly string[]) this.#retired.add(did);
    this.#jumpToLinked();
    this.#listen();
    if (this.file === undefined) this.#follow();
    else this.#read(this.file).catch(reportError);
  }

  disconnectedCallback(): void {
    this.#stop();
    this.#ended.abort();
  }

  #follow(): void {
    const { base = '../', chamber = '', worker: url = '', events = '' } = this.dataset;
    const { signal } = this.#ended;
    const address = new URL(`${base}chambers/${chamber}`, location.href).href;
    const service = new URL(base, location.href).href;
    const job = {
      chamberId: Number(chamber),
      published: { base: service, saved: savedCheckpoint(service), witnesses: namedWitnesses() },
      preview: `${address}/merkle-preview`,
      named: namedRoot(),
      chain: namedChain(),
    };
    const onReport = (report: Audit) => {
      if (report.note !== undefined) saveCheckpoint(service, report.note);
      this.#onReport(report);
    };
    const audit = startAudit({ url, job, onReport, signal });
    const onLine = (line: string) => {
      const event = this.#fold(line);
      audit(line);
      if (event?.type === 'chamber.joined' && event.eventId > Number(events)) {
        this.#fetchLabel(event.did).catch(reportError);
      }
      this.#schedule();
    };
    const onConnection = (isConnected: boolean) => {
      this.#isConnected = isConnected;
      this.#schedule();
    };
    const onPhase = (at: number) => {
      this.#clock.atLeast(at);
      this.#schedule();
    };
    // The page and its worker contain the withheld text; a reloaded page gets the stub.
    const onWithheld = () => location.reload();
    followLog(`${address.replace(/^http/, 'ws')}/stream`, { onLine, onPhase, onConnection, onWithheld, signal });
    const timers = [
      setInterval(() => this.#schedule(), TICK_MILLIS),
      setInterval(() => {
        this.#fetchHealth().catch(reportError);
      }, HEALTH_MILLIS),
    ];
    signal.addEventListener('abort', () => timers.forEach(clearInterval));
  }

  async #read(file: File): Promise<void> {
    const { worker: url = '' } = this.dataset;
    startAudit({ url, job: { file, chain: namedChain() }, onReport: this.#onReport, signal: this.#ended.signal });
    const lines = (await file.text()).split('\n');
    for (const line of lines) if (line !== '') this.#fold(line);
    this.#schedule();
  }

  readonly #onReport = (audit: Audit): void => {
    this.#audit = audit;
    this.#broken = new Set(audit.results.flatMap(({ findings }) => findings.flatMap(({ eventIds }) => eventIds)));
    this.#schedule();
  };

  /** Fetches the label of an agent that joined after the page was rendered. */
  async #fetchLabel(did: string): Promise<void> {
    const { base = '../' } = this.dataset;
    const response = await fetch(`${base}agents/${encodeURIComponent(did)}`).catch(() => undefined);
    if (!response?.ok) return;
    const { label, retiredAt } = (await response.json()) as { label: string | null; retiredAt?: string };
    if (label !== null) this.#labels.set(did, label);
    if (retiredAt !== undefined) this.#retired.add(did);
    this.#schedule();
  }

  /** Fetches the relayer's problem, which the page shows until the root is on the chain. */
  async #fetchHealth(): Promise<void> {
    const state = this.#steps.at(-1)?.state ?? null;
    if (document.hidden || state === null || !isClosed(state, this.#clock.now())) return;
    if (state.settlement.committed !== null) return;
    const { base = '../' } = this.dataset;
    const response = await fetch(`${base}health`).catch(() => undefined);
    if (!response?.ok) return;
    const { chain } = (await response.json()) as Health;
    this.#relayerProblem = chain === null ? WITHOUT_CHAIN : chain?.relayer.reason;
    this.#schedule();
  }

  #listen(): void {
    const { signal } = this.#ended;
    this.#drawing.watch(this, signal);
    addEventListener('hashchange', () => this.#jumpToLinked(), { signal });
    addEventListener('beforeprint', () => this.#print(true), { signal });
    addEventListener('afterprint', () => this.#print(false), { signal });
    document.addEventListener('keydown', (event) => this.#onKey(event), { signal });
    this.addEventListener('input', ({ target }) => {
      if (target instanceof HTMLSelectElement) this.#setSpeed(Number(target.value));
      if (target instanceof HTMLInputElement && target.type === 'range') this.#show(Number(target.value));
    });
    this.addEventListener('click', ({ target }) => {
      const act = target instanceof Element ? target.closest<HTMLElement>('[data-act]')?.dataset['act'] : undefined;
      if (act === 'play') this.#toggle();
      if (act === 'live') this.#show(undefined);
    });
  }

  #jumpToLinked(): void {
    const eventId = linkedEvent();
    this.#jump = eventId === undefined ? undefined : { eventId, framesLeft: JUMP_FRAMES };
    if (eventId !== undefined && eventId > this.#position) this.#show(eventId);
    this.#schedule();
  }

  get #position(): number {
    return this.#shown ?? this.#steps.length;
  }

  #fold(line: string): ChamberEvent | null {
    const before = this.#steps.at(-1)?.state ?? null;
    try {
      const event = fromLine(line) as ChamberEvent;
      const state = evolveChamber(before, event);
      this.#steps.push({ state, eventCount: this.#events.push(event) });
      return event;
    } catch {
      this.#steps.push({ state: before, eventCount: this.#events.length });
      return null;
    }
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
    this.#play();
  }

  #setSpeed(speed: number): void {
    this.#speed = SPEEDS.includes(speed) ? speed : 1;
    if (this.#player !== undefined) this.#play();
  }

  #play(): void {
    clearInterval(this.#player);
    this.#player = setInterval(() => this.#show(this.#position + 1), PLAY_MILLIS / this.#speed);
    this.#schedule();
  }

  #stop(): void {
    clearInterval(this.#player);
    this.#player = undefined;
    this.#schedule();
  }

  /** Handles keys in the replay, or anywhere if nothing has the focus. The slider handles its own keys, except the space bar. */
  #onKey(event: KeyboardEvent): void {
    const { target, key } = event;
    if (!(target instanceof Element) || event.ctrlKey || event.altKey || event.metaKey) return;
    const isInReplay = target.closest('.replay') !== null && !(target instanceof HTMLSelectElement);
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

  get #isSettled(): boolean {
    const state = this.#steps.at(-1)?.state ?? null;
    return state !== null && 'view' in outcomeOf(state, state.lastAt);
  }

  /** Whether all events of the service's rendering have arrived. Until then, the rendering stays. */
  get #isReady(): boolean {
    return this.#steps.length >= Math.max(1, Number(this.dataset['events'] ?? 1));
  }

  #schedule(): void {
    if (this.#isReady) this.#drawing.schedule();
  }

  /** Renders synchronously, because browsers print the document as soon as the event handler returns. */
  #print(isPrinted: boolean): void {
    this.#chunks.isPrinted = isPrinted;
    if (this.#isReady) this.#render();
  }

  #render(): void {
    const total = this.#steps.length;
    const shown = this.#position;
    const { state = null, eventCount = 0 } = this.#steps[shown - 1] ?? {};
    const live = this.#liveModel(total, shown);
    const events = shown === total ? this.#events : this.#events.slice(0, eventCount);
    const isPast = shown < total || this.file !== undefined;
    const now = isPast && state !== null ? state.lastAt : this.#clock.now();
    try {
      if (state === null) throw new Error('the chamber was not created');
      const relayerProblem = this.#relayerProblem;
      patchChildren(this, [
        chamberView({ state, events, now, labels: this.#labels, retired: this.#retired, relayerProblem, live }),
      ]);
    } catch {
      // Altered lines can fold into a state that can't be shown; the findings give the reason.
      const chamberId = Number(this.dataset['chamber']);
      patchChildren(this, [
        h('main', { id: 'main' }, h('h1', {}, 'This log cannot be shown'), verifySection(chamberId, live)),
      ]);
    }
    this.#chunks.observe(this);
    const jump = this.#jump;
    const target = jump && document.getElementById(`e${jump.eventId}`);
    if (!target) return;
    target.scrollIntoView({ block: 'center' });
    jump.framesLeft--;
    if (jump.framesLeft === 0) this.#jump = undefined;
    this.#schedule();
  }

  #liveModel(total: number, shown: number): LiveModel {
    const { checked } = this.#audit;
    return {
      total,
      shown,
      isPlaying: this.#player !== undefined,
      speed: this.#speed,
      isConnected: this.#isConnected,
      isSettled: this.#isSettled,
      file: this.file?.name,
      linked: linkedEvent(),
      chain: namedChain(),
      witnesses: namedWitnesses(),
      audit: this.#audit,
      markOf: (eventId) => (this.#broken.has(eventId) ? 'broken' : eventId <= checked ? 'verified' : 'waiting'),
      ...this.#chunks.frame(shown),
    };
  }
}
