// A state machine of nodes on one database, their clients and the network between them. The caller chooses each named step; the
// same steps lead to the same state.
import type { Command } from '../../../src/forum/commands.ts';
import type { Forum } from '../../../src/forum/forum.ts';
import type { Page } from '../../../src/log/log.ts';
import type { ChamberLimits } from '../../../src/moves/move.ts';
import type { SignatureAges } from '../../../src/moves/rules.ts';
import { MainThreadMeter } from '../../../src/process/main-thread.ts';
import { ForumError } from '../../../src/vocabulary/errors.ts';
import { type ForumEvent, type RequestEvidence, toLine } from '../../../src/vocabulary/events.ts';
import { type JsonValue, type Millis, SIGNATURE_AGES } from '../../../src/vocabulary/values.ts';
import { passing } from '../../kit/clock.ts';
import type { AskedCommand, AskedRead, History, HistoryRequest, Outcome, Stream } from './history.ts';
import type { MemoryDatabase } from './memory-database.ts';
import { type Network, openMemoryStore, type StoreRequest, UnknownStoreError, unavailable } from './memory-store.ts';
import { refusal } from './refusals.ts';
import { settled, virtual } from './virtual-timers.ts';

/** A client's request and the node that receives it. */
export interface Sent {
  readonly id: string;
  readonly node: number;
  readonly ask: AskedCommand | AskedRead;
  /** Requests that need a response, or whose node must have crashed, before this one is sent. */
  readonly after?: readonly string[];
}

export interface WorldOptions {
  readonly Forum: typeof Forum;
  readonly nodes: number;
  readonly limits: ChamberLimits;
  readonly stateCacheBytesMax: number;
  readonly clock: Millis;
  /** How far each node's clock is ahead of the world's, in milliseconds. */
  readonly skews?: readonly Millis[];
  /** The specification's limits by default. */
  readonly ages?: SignatureAges;
  /** Whether the database may also reject requests, and the store may fail in unknown ways. */
  readonly hasStoreErrors?: boolean;
  readonly guesses?: (signatureKey: string) => boolean;
  /** Whether turns of the event loop and timers are separate steps; otherwise they run at once. */
  readonly hasTurns?: boolean;
  /** Whether requests to one node arrive in the order in which they were sent. */
  readonly isOrdered?: boolean;
}

export interface Step {
  readonly name: string;
  readonly kind: 'send' | 'arrive' | 'respond' | 'fault' | 'turn';
  /** The node that the step affects; undefined if it affects all nodes. */
  readonly node: number | undefined;
  readonly isAppend: boolean;
  readonly take: () => void;
}

/**
 * Returns whether two possible steps lead to the same state in either order, and to histories with the same verdict: they belong to
 * different nodes, neither writes to the log, and they are not a request and a response.
 */
export function areIndependent(one: Step, other: Step): boolean {
  if (one.node === undefined || other.node === undefined || one.node === other.node) return false;
  if ((one.kind === 'arrive' && one.isAppend) || (other.kind === 'arrive' && other.isAppend)) return false;
  const answers = (step: Step) => step.kind === 'fault' || (step.kind === 'respond' && step.isAppend);
  return !(one.kind === 'send' && answers(other)) && !(other.kind === 'send' && answers(one));
}

interface Exchange {
  readonly id: string;
  readonly node: Node;
  readonly request: StoreRequest;
  readonly work: () => unknown;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
  result: { readonly value: unknown } | undefined;
  /** Whether the node has abandoned the exchange or is dead; the request may still arrive. */
  isAbandoned: boolean;
}

interface Node {
  readonly index: number;
  readonly name: string;
  readonly forum: Forum;
  isDead: boolean;
  exchanges: number;
  /** The messages that have reached the node, in order; they determine the node's state. */
  readonly inputs: string[];
}

interface Pending {
  readonly node: Node;
  readonly request: HistoryRequest;
  /** The part of the past that determines the verdict on the outcome; it is part of a state's key. */
  readonly past: string;
}

export class World {
  readonly database: MemoryDatabase;
  readonly #options: WorldOptions;
  readonly #nodes: Node[] = [];
  readonly #requests: HistoryRequest[];
  readonly #pending = new Map<string, Pending>();
  #exchanges: Exchange[] = [];
  #unsent: Sent[] = [];
  #time: number;
  #clock: Millis;
  /** The values to which the clock was set, in order. */
  readonly #clocks: Millis[] = [];
  #latestClock: Millis;
  #isDirect = false;
  #warm: readonly Stream[] = [];
  /** The node that was started in the last step. */
  #started: Node | undefined;
  /** The highest head in a response to a client, by stream. */
  readonly #answered = new Map<Stream, number>();

  constructor(database: MemoryDatabase, past: readonly HistoryRequest[], options: WorldOptions) {
    this.database = database;
    this.#options = options;
    this.#requests = [...past];
    this.#time = Math.max(
      0,
      ...past.map(({ respondedAt = 0 }) => respondedAt),
      ...database.commits.map(({ writtenAt }) => writtenAt),
    );
    this.#clock = options.clock;
    this.#latestClock = options.clock;
    database.time = () => this.#time;
    for (let index = 0; index < options.nodes; index++) this.#start(index);
  }

  #start(index: number): Node {
    const incarnation = this.#nodes[index] === undefined ? 1 : Number(this.#nodes[index].name.split('.')[1]) + 1;
    const name = `${'ABCDEFGH'[index]}.${incarnation}`;
    let node: Node | undefined;
    const network: Network = {
      exchange: (request, work) => this.#exchange(node as Node, request, work),
    };
    const { Forum, limits, stateCacheBytesMax, guesses } = this.#options;
    const store = openMemoryStore(this.database, { network, ...(guesses && { guesses }) });
    const forum = new Forum({
      store,
      meter: new MainThreadMeter(),
      limits,
      stateCacheBytesMax,
      ages: this.#ages,
      commitQueueMax: 1_000,
      permits: () => true,
      clock: passing(() => this.#clockOf(index)),
      clockJumpMillis: 1,
      onFatal: (error) => this.#stop(node as Node, error),
    });
    node = { index, name, forum, isDead: false, exchanges: 0, inputs: [] };
    this.#nodes[index] = node;
    return node;
  }

  #clockOf(index: number): Millis {
    return this.#clock + this.#skewOf(index);
  }

  #skewOf(index: number): Millis {
    return this.#options.skews?.[index] ?? 0;
  }

  get #ages(): SignatureAges {
    return this.#options.ages ?? SIGNATURE_AGES.caps;
  }

  /** Ends a process whose memory and log may differ. */
  #stop(node: Node, error: unknown): void {
    if (node.isDead) return;
    if (error instanceof UnknownStoreError) {
      this.#crash(node);
      return;
    }
    const problem = error instanceof Error ? String(error.stack) : String(error);
    const request = { id: `fatal at ${node.name}`, asked: { stream: 0 }, invokedAt: this.#time };
    this.#requests.push({ ...request, respondedAt: this.#time, outcome: { is: 'defect', problem } });
  }

  #exchange<Result>(node: Node, request: StoreRequest, work: () => Result): Promise<Result> {
    if (this.#isDirect) return Promise.resolve().then(work);
    return new Promise<Result>((resolve, reject) => {
      if (node.isDead) return;
      const id = `${node.name}#${++node.exchanges} ${request.name}`;
      this.#exchanges.push({ id, node, request, work, resolve, reject, result: undefined, isAbandoned: false });
    });
  }

  /** Loads streams into the memory of every node, including nodes started later, without steps. */
  async warm(streams: readonly Stream[]): Promise<void> {
    this.#warm = streams;
    for (const node of this.#nodes) await this.#warmUp(node);
  }

  async #warmUp({ forum }: Node): Promise<void> {
    this.#isDirect = true;
    for (const stream of this.#warm) {
      await this.#drain(typeof stream === 'number' ? forum.chamber(stream) : forum.account(stream));
    }
    this.#isDirect = false;
  }

  async #drain(work: Promise<unknown>): Promise<void> {
    let isDone = false;
    void work.then(() => {
      isDone = true;
    });
    while (!isDone) {
      await settled();
      virtual.runTurns();
    }
  }

  send(sent: Sent): void {
    this.#unsent.push(sent);
  }

  /** Delivers all requests and responses at once, in the order of sending. */
  async sendAtOnce(...sents: readonly Sent[]): Promise<void> {
    for (const sent of sents) {
      this.#isDirect = true;
      this.#invoke(sent);
      while (this.#pending.has(sent.id)) {
        await settled();
        virtual.runTurns();
        virtual.runTimers();
      }
      this.#isDirect = false;
    }
  }

  /** Moves the clock, which may also go back. */
  setClock(clock: Millis): void {
    this.#clock = clock;
    this.#clocks.push(clock);
    this.#latestClock = Math.max(this.#latestClock, clock + Math.max(0, ...(this.#options.skews ?? [])));
  }

  get clock(): Millis {
    return this.#clock;
  }

  get unanswered(): number {
    return this.#pending.size + this.#unsent.length;
  }

  /** The possible next steps. Faults are included only with `hasFaults`. */
  steps(hasFaults: boolean): readonly Step[] {
    const steps: Step[] = [];
    const busy = new Set<number>();
    for (const sent of this.#unsent) {
      if (!this.#isDue(sent) || (this.#options.isOrdered && busy.has(sent.node))) continue;
      busy.add(sent.node);
      const of = { kind: 'send', node: sent.node, isAppend: false } as const;
      steps.push({ ...of, name: `send ${sent.id}`, take: () => this.#sendNow(sent) });
    }
    for (const exchange of this.#exchanges) steps.push(...this.#stepsOf(exchange, hasFaults));
    if (this.#options.hasTurns && virtual.hasTurns) steps.push(TURN);
    if (this.#options.hasTurns && virtual.hasTimers) steps.push(TIMERS);
    if (!hasFaults) return steps;
    for (const node of this.#nodes) {
      const isBusy = [...this.#pending.values()].some((pending) => pending.node === node);
      const of = { kind: 'fault', node: undefined, isAppend: false } as const;
      if (isBusy) steps.push({ ...of, name: `crash ${node.name}`, take: () => this.#crash(node) });
    }
    return steps;
  }

  #stepsOf(exchange: Exchange, hasFaults: boolean): readonly Step[] {
    const { id, node, request, result, isAbandoned } = exchange;
    const { isAppend } = request;
    const at = { node: node.index, isAppend };
    const arrive = () => this.#arrive(exchange);
    if (isAbandoned) {
      const drop = () => this.#remove(exchange);
      return [
        { ...at, kind: 'arrive', name: `arrive late ${id}`, take: arrive },
        { ...at, kind: 'arrive', name: `drop ${id}`, take: drop },
      ];
    }
    const steps: Step[] = [
      result === undefined
        ? { ...at, kind: 'arrive', name: `arrive ${id}`, take: arrive }
        : { ...at, kind: 'respond', name: `respond ${id}`, take: () => this.#respond(exchange, result.value) },
    ];
    if (!hasFaults) return steps;
    if (result === undefined)
      steps.push({ ...at, kind: 'fault', name: `fail ${id}`, take: () => this.#fail(exchange) });
    if (this.#options.hasStoreErrors)
      steps.push({ ...at, kind: 'fault', name: `break ${id}`, take: () => this.#break(exchange) });
    if (this.#options.hasStoreErrors && result === undefined)
      steps.push({ ...at, kind: 'fault', name: `refuse ${id}`, take: () => this.#refuse(exchange) });
    if (!isAppend) return steps;
    const lost = result === undefined ? 'give up' : 'lose';
    steps.push({ ...at, kind: 'fault', name: `${lost} ${id}`, take: () => this.#lose(exchange) });
    return steps;
  }

  #isDue({ after = [] }: Sent): boolean {
    return after.every((id) => this.#requests.some((request) => request.id === id) && !this.#pending.has(id));
  }

  #sendNow(sent: Sent): void {
    this.#unsent = this.#unsent.filter((other) => other !== sent);
    this.#invoke(sent);
  }

  #invoke({ id, node: index, ask }: Sent): void {
    const node = this.#nodes[index] as Node;
    const request: HistoryRequest = { id, asked: ask, invokedAt: ++this.#time };
    this.#requests.push(request);
    this.#pending.set(id, { node, request, past: this.#pastOf(ask) });
    node.inputs.push(`${id}@${this.#clockOf(index)}`);
    const sentAt = this.#clockOf(index);
    const clocksBefore = this.#clocks.length;
    const outcome = 'stream' in ask ? this.#read(node, ask) : this.#command(node, ask);
    void outcome.then((found) => {
      if (node.isDead) return;
      this.#pending.delete(id);
      // If the clock was set back before the node read it, the node decided with the earlier time.
      const from = Math.min(sentAt, ...this.#clocks.slice(clocksBefore).map((clock) => clock + this.#skewOf(index)));
      const to = Math.max(this.#latestClock, this.database.clock, sentAt);
      const at = this.#requests.indexOf(request);
      this.#requests[at] = { ...request, respondedAt: this.#time, outcome: found, clock: { from, to } };
      this.#noteAnswered(ask, found);
    });
  }

  #pastOf(ask: AskedCommand | AskedRead): string {
    if ('stream' in ask) return `${this.#answered.get(ask.stream)}`;
    if (ask.operation === 'createChamber') return `${this.database.commits.length}`;
    const heads = [ask.chamberId, ask.did].map((stream) => (stream === null ? 0 : this.database.head(stream)));
    return heads.join();
  }

  #noteAnswered(ask: AskedCommand | AskedRead, outcome: Outcome): void {
    if (outcome.is !== 'accepted' || 'stream' in ask) return;
    const { chamberId, eventId = 0 } = outcome.event;
    const stream = chamberId ?? (ask.did as string);
    this.#answered.set(stream, Math.max(this.#answered.get(stream) ?? 0, eventId));
  }

  async #read({ forum }: Node, { stream }: AskedRead): Promise<Outcome> {
    try {
      const state = await (typeof stream === 'number' ? forum.chamber(stream) : forum.account(stream));
      return { is: 'read', lastEventId: state?.state.lastEventId ?? 0, headHash: state?.headHash };
    } catch (error) {
      return outcomeOf(error);
    }
  }

  async #command({ forum }: Node, asked: AskedCommand): Promise<Outcome> {
    try {
      const event = (await forum.submit(commandOf(asked))) as ForumEvent | null;
      if (event === null) return { is: 'unchanged' };
      return { is: 'accepted', event: { eventId: event.eventId, chamberId: event.chamberId, line: toLine(event) } };
    } catch (error) {
      return outcomeOf(error);
    }
  }

  #arrive(exchange: Exchange): void {
    try {
      exchange.result = { value: exchange.work() };
    } catch (error) {
      this.#remove(exchange);
      exchange.reject(error);
      return;
    }
    if (exchange.isAbandoned) this.#remove(exchange);
  }

  #respond(exchange: Exchange, value: unknown): void {
    this.#remove(exchange);
    exchange.node.inputs.push(`${exchange.id}=${digestOf(value)}@${this.#clockOf(exchange.node.index)}`);
    exchange.resolve(value as never);
  }

  #fail(exchange: Exchange): void {
    this.#remove(exchange);
    exchange.node.inputs.push(`${exchange.id} failed@${this.#clockOf(exchange.node.index)}`);
    exchange.reject(unavailable());
  }

  /** Loses the response; the request may have arrived, or may arrive later. */
  #lose(exchange: Exchange): void {
    if (exchange.result === undefined) exchange.isAbandoned = true;
    else this.#remove(exchange);
    exchange.node.inputs.push(`${exchange.id} failed@${this.#clockOf(exchange.node.index)}`);
    exchange.reject(unavailable());
  }

  /** Breaks the connection; a request that has not arrived never will. */
  #break(exchange: Exchange): void {
    this.#remove(exchange);
    exchange.node.inputs.push(`${exchange.id} broke@${this.#clockOf(exchange.node.index)}`);
    exchange.reject(new UnknownStoreError());
  }

  /** Makes the database reject the request without writing anything. */
  #refuse(exchange: Exchange): void {
    this.#remove(exchange);
    const { node } = exchange;
    node.inputs.push(`${exchange.id} refused@${this.#clockOf(node.index)}`);
    exchange.reject(refusal(node.exchanges));
  }

  #remove(exchange: Exchange): void {
    this.#exchanges = this.#exchanges.filter((other) => other !== exchange);
  }

  /** Crashes the process and starts a new one in its place. Clients repeat requests without a response. */
  #crash(node: Node): void {
    node.isDead = true;
    const orphans = this.#exchanges.filter((exchange) => exchange.node === node);
    for (const exchange of orphans) {
      if (exchange.request.isAppend && exchange.result === undefined) exchange.isAbandoned = true;
      else this.#remove(exchange);
    }
    this.#started = this.#start(node.index);
    for (const [id, pending] of this.#pending) {
      if (pending.node !== node) continue;
      this.#pending.delete(id);
      const { asked } = pending.request;
      if ('operation' in asked && asked.signature !== null)
        this.send({ id: `${id} again`, node: node.index, ask: asked });
    }
  }

  /** Takes the step, and waits for all of its immediate consequences. */
  async take(step: Step): Promise<void> {
    this.#time++;
    step.take();
    await settled();
    if (this.#started !== undefined) await this.#warmUp(this.#started);
    this.#started = undefined;
    if (this.#options.hasTurns) return;
    while (virtual.hasTurns || virtual.hasTimers) {
      virtual.runTurns();
      virtual.runTimers();
      await settled();
    }
  }

  /** Returns a key; worlds with the same key behave alike, and the open parts of their requests will be judged alike. */
  get key(): string {
    const nodes = this.#nodes.map(({ name, inputs }) => `${name} ${inputs.join(' ')}`);
    const exchanges = this.#exchanges.map(({ id, result, isAbandoned }) => {
      return `${id} ${result === undefined ? 'sent' : digestOf(result.value)} ${isAbandoned}`;
    });
    const pending = [...this.#pending].map(([id, { past }]) => `${id} ${past}`).sort();
    const unsent = this.#unsent.map(({ id }) => id).sort();
    return [
      ...this.database.written,
      '|',
      ...nodes,
      '|',
      ...exchanges.sort(),
      '|',
      ...pending,
      '|',
      ...unsent,
      this.#clock,
    ].join('\n');
  }

  get history(): History {
    const { commits } = this.database;
    const byStream = Map.groupBy(commits, ({ stream }) => stream);
    const lines = new Map([...byStream].map(([stream, own]) => [stream, own.map(({ line }) => line)]));
    return {
      requests: this.#requests,
      lines,
      commits,
      limits: this.#options.limits,
      ages: this.#ages,
      isComplete: true,
    };
  }

  /** Lets the remaining work of dead nodes end, so that it does not affect another world. */
  async end(): Promise<void> {
    for (const node of this.#nodes) node.isDead = true;
    this.#exchanges = [];
    while (virtual.hasTurns || virtual.hasTimers) {
      virtual.runTurns();
      virtual.runTimers();
      await settled();
    }
  }
}

const OF_ALL = { kind: 'turn', node: undefined, isAppend: false } as const;
const TURN: Step = { ...OF_ALL, name: 'turn', take: () => virtual.runTurns() };
const TIMERS: Step = { ...OF_ALL, name: 'timers', take: () => virtual.runTimers() };

function outcomeOf(error: unknown): Outcome {
  if (error instanceof ForumError) return { is: 'rejected', code: error.code };
  if (error instanceof UnknownStoreError) return { is: 'rejected', code: 'FORUM_ERR_INTERNAL' };
  if (error instanceof Error && error.name === 'ServiceFactRejected')
    return { is: 'rejected', code: 'FORUM_ERR_CONFLICT' };
  return { is: 'defect', problem: error instanceof Error ? String(error.stack) : String(error) };
}

function digestOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if ('conflicts' in value && 'found' in value) {
    const { conflicts, found } = value as {
      readonly conflicts: ReadonlyMap<Stream, number>;
      readonly found: ReadonlyMap<string, string>;
    };
    return `${[...conflicts].map(([stream, head]) => `${stream}:${head}`)} ${[...found.keys()].join()}`;
  }
  return 'count' in value ? `${(value as Page).count} lines` : 'object';
}

/** The lengths, in characters, of a signatureKey and of the hidden key of a registration. */
const KEY_CHARS = { signature: 72, hidden: 32 } as const;

function commandOf({ operation, chamberId, did, body, signature, created = 0, expires }: AskedCommand): Command {
  if (operation === 'record') return { operation, chamberId, fact: body } as unknown as Command;
  const isRegistration = operation === 'register';
  const chars = isRegistration ? KEY_CHARS.hidden : KEY_CHARS.signature;
  const isHidden = isRegistration && typeof body === 'object' && body !== null && 'operatorEmail' in body;
  const caller = {
    did,
    request: signature === null || isHidden ? null : evidenceOf(signature, body),
    signature: signature === null ? null : signature.padEnd(chars, '.'),
    times: signature === null ? null : { created, ...(expires !== undefined && { expires }) },
  };
  return { operation, ...(chamberId !== null && { chamberId }), body: { json: body }, caller } as unknown as Command;
}

function evidenceOf(signature: string, body: JsonValue | undefined): RequestEvidence {
  const text = body === undefined ? '' : JSON.stringify(body);
  return { method: 'POST', targetUri: '', body: text, contentDigest: '', signatureInput: '', signature };
}
