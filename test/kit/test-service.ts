// Runs the service in process, without a port: the shipped composition on a real log, with a clock that the test moves.
import { pino } from 'pino';
import { expect } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { Forum } from '../../src/forum/forum.ts';
import type { ForumApp } from '../../src/http/context.ts';
import { keysInMemory } from '../../src/keys/key-file.ts';
import type { ServiceKeys } from '../../src/keys/service-keys.ts';
import type { EventLog } from '../../src/log/log.ts';
import { originOf } from '../../src/log/log-id.ts';
import type { Store } from '../../src/log/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { PublishedHistory } from '../../src/publisher/published-history.ts';
import type { ChainLink } from '../../src/service/chain.ts';
import { type Composition, composeCore, composeService, NO_CHAIN } from '../../src/service/compose.ts';
import { createVerifier, type SignatureVerifierPool } from '../../src/verifier/verifier.ts';
import type { ErrorCode } from '../../src/vocabulary/errors.ts';
import type { ForumEvent } from '../../src/vocabulary/events.ts';
import { TestClock } from './clock.ts';
import type { Settings } from './open-service.ts';
import { Signer } from './signer.ts';
import { openTestStore } from './store.ts';
import { atEnd } from './temporary.ts';
import { registrationOf } from './wire.ts';

export { registrationOf };

export const PUBLIC_URL = 'https://forum.test';

export interface TestServiceOptions {
  readonly path?: string;
  /** The store that replaces a SQLite log in `path`; the service closes it. */
  readonly store?: Store;
  readonly clock?: TestClock;
  /** The service's keys; new ones by default. */
  readonly keys?: (logId: string) => ServiceKeys;
  readonly settings?: Settings;
  /** The chain's status in /health; none by default. */
  readonly chain?: ChainLink;
  readonly verify?: SignatureVerifierPool['verify'];
  /** Wraps the log, for example to make it fail. */
  readonly wrapLog?: (log: EventLog) => EventLog;
  readonly callbackNetwork?: NonNullable<Parameters<typeof composeService>[1]['callbackNetwork']>;
}

export interface Call {
  /** Signs the request; a request without a signer is unsigned. */
  readonly by?: Signer | undefined;
  /** Sent as JSON, except that a string is sent unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Unix seconds; the clock's time by default. */
  readonly created?: number;
}

/** A request that can be sent repeatedly with the same bytes. */
export interface Prepared {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: responses are JSON, which every test reads in its own way
  readonly body: any;
  readonly headers: Headers;
}

/** The verifier is shared and never closed, because it has no threads. */
const verifier = createVerifier({ threads: 0 });

export class TestService {
  readonly clock: TestClock;
  readonly store: Store;
  readonly log: EventLog;
  readonly composed: Composition;
  readonly forum: Forum;
  readonly app: ForumApp;
  /** The internal errors that the service reported. */
  readonly defects: unknown[] = [];
  readonly #baseUrl: string;
  #closing: Promise<void> | undefined;

  constructor({
    path,
    store,
    clock = new TestClock(),
    keys,
    settings,
    chain = NO_CHAIN,
    verify,
    wrapLog,
    callbackNetwork = {},
  }: TestServiceOptions = {}) {
    this.clock = clock;
    const opened = store ?? openTestStore(path);
    this.log = wrapLog?.(opened.log) ?? opened.log;
    this.store = { ...opened, log: this.log };
    const config = readConfig({ PUBLIC_URL, CHAIN: 'none', ...settings });
    const core = composeCore({
      config,
      store: this.store,
      keys: keys?.(opened.log.logId) ?? keysInMemory(opened.log.logId, clock.read()),
      clock: clock.source,
      logger: pino({ level: 'error' }, { write: (line: string) => void this.defects.push(new Error(line)) }),
      onFatal: (error) => void this.defects.push(error),
    });
    this.composed = composeService(core, {
      chain,
      verifier: verify === undefined ? verifier : { ...verifier, verify },
      version: '1.2.3',
      callbackNetwork,
      origin: originOf(opened.meta, opened.log.logId, PUBLIC_URL),
      history: new PublishedHistory({
        logId: opened.log.logId,
        path: undefined,
        keys: () => core.keys.all('checkpoints'),
      }),
    });
    this.forum = core.forum;
    this.app = this.composed.app;
    this.#baseUrl = config.PUBLIC_URL[0] ?? PUBLIC_URL;
    atEnd(async () => {
      await this.close();
      if (this.defects.length > 0) throw this.defects[0];
    });
  }

  prepare(method: string, path: string, { by, body, headers, created = this.clock.seconds }: Call = {}): Prepared {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const type: Record<string, string> = text === undefined ? {} : { 'content-type': 'application/json' };
    const signature = by?.sign({ method, url: this.#baseUrl + path, body: text, created });
    return { method, path, body: text, headers: { ...type, ...signature, ...headers } };
  }

  async send({ method, path, body, headers }: Prepared): Promise<Answer> {
    const init = { method, headers, ...(body === undefined ? {} : { body }) };
    const response = await this.app.request(path, init, {});
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
  }

  request(method: string, path: string, call?: Call): Promise<Answer> {
    return this.send(this.prepare(method, path, call));
  }

  /** Sends a request that must succeed, and returns the body of the response. */
  async must(method: string, path: string, call?: Call): Promise<Answer['body']> {
    const { status, body } = await this.request(method, path, call);
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Registers and returns an agent. */
  async agent(registration: Readonly<Record<string, unknown>> = {}): Promise<Signer> {
    const signer = new Signer();
    await this.must('POST', '/register', { body: { ...registrationOf(signer), ...registration } });
    return signer;
  }

  /** Publishes a checkpoint; a node may first have to acquire the lease. */
  async publish(): Promise<void> {
    const last = await this.log.lastPlace();
    for (let size = -1; size < last; size = (await this.store.tree.checkpoint())?.size ?? 0) {
      await this.composed.publishing.round();
    }
  }

  async lines(stream: StreamId): Promise<readonly string[]> {
    const { ndjson } = await this.log.readPage(stream, 0, 10_000);
    return ndjson.toString().split('\n').slice(0, -1);
  }

  async events(stream: StreamId): Promise<readonly ForumEvent[]> {
    return (await this.lines(stream)).map((line) => JSON.parse(line));
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.composed.drain();
    await Promise.all([this.composed.calling.stop(), this.composed.withholder.stop()]);
    this.composed.close();
    await this.store.close();
  }
}

/** Returns the expected response to a rejected request, for toMatchObject; `detail` may be a part of the text. */
export function refusal(status: number, error: ErrorCode, detail: string | RegExp = '') {
  const isPart = typeof detail === 'string' ? expect.stringContaining(detail) : expect.stringMatching(detail);
  return { status, body: { error, detail: isPart } };
}

/** Opens a service with a registered agent. */
export async function withAgent(options?: TestServiceOptions) {
  const service = new TestService(options);
  return { service, by: await service.agent() };
}

/** Opens a service with two registered agents. */
export async function withTwoAgents(options?: TestServiceOptions) {
  const { service, by: ann } = await withAgent(options);
  return { service, ann, bob: await service.agent() };
}
