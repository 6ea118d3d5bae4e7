// A house: the HTTP edge in process, without a port, over a real forum on a real log, with a clock that the test moves.
import { Liveness } from '../../src/connections/liveness.ts';
import { Quota } from '../../src/connections/quota.ts';
import type { AgentRate } from '../../src/forum/decisions.ts';
import { Forum } from '../../src/forum/forum.ts';
import { RateLimit } from '../../src/http/admission.ts';
import { createApp } from '../../src/http/app.ts';
import type { Failure, ForumApp, HttpOptions } from '../../src/http/context.ts';
import { CORS_HEADERS } from '../../src/http/response.ts';
import { TodoWatches } from '../../src/http/todo-watches.ts';
import type { EventLog } from '../../src/log/log.ts';
import type { Store } from '../../src/log/store.ts';
import { pageRoutes } from '../../src/page/routes.ts';
import { createVerifier } from '../../src/verifier/verifier.ts';
import type { ForumEvent } from '../../src/vocabulary/events.ts';
import { TestClock } from './clock.ts';
import { LIMITS } from './given.ts';
import { Signer } from './signer.ts';
import { openTestStore } from './store.ts';
import { atEnd } from './temporary.ts';

export const PUBLIC_URL = 'https://forum.test';

export interface HouseOptions
  extends Partial<Pick<HttpOptions, 'publicUrls' | 'allowUnsigned' | 'maxBodyBytes' | 'verify'>> {
  readonly path?: string;
  /** Instead of an SQLite log in `path`; the house closes it. */
  readonly store?: Store;
  readonly clock?: TestClock;
  readonly limits?: Partial<typeof LIMITS>;
  readonly stateCacheBytesMax?: number;
  readonly commitQueueMax?: number;
  readonly agentRate?: AgentRate;
  readonly permits?: (did: string) => boolean;
  /** Wraps the log, to make it fail. */
  readonly wrapLog?: (log: EventLog) => EventLog;
}

export interface Call {
  /** Signs the request; without it the request is unsigned. */
  readonly by?: Signer | undefined;
  /** Sent as JSON; a string is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Unix seconds; the clock's by default. */
  readonly created?: number;
}

/** A request ready to be sent, any number of times, byte for byte. */
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

const RATE = { perSecond: 10_000, burst: 20_000 };
const verifier = createVerifier({ threads: 0 });

export class House {
  readonly clock: TestClock;
  readonly store: Store;
  readonly log: EventLog;
  readonly forum: Forum;
  readonly app: ForumApp;
  /** Errors that no client should have been able to cause. */
  readonly defects: unknown[] = [];
  readonly #baseUrl: string;
  #closing: Promise<void> | undefined;

  constructor(options: HouseOptions = {}) {
    const {
      path,
      clock = new TestClock(),
      limits,
      stateCacheBytesMax = 67_108_864,
      commitQueueMax = 10_000,
      permits = () => true,
      wrapLog,
      ...http
    } = options;
    const { publicUrls = [PUBLIC_URL], allowUnsigned = false, maxBodyBytes = 65_536, verify = verifier.verify } = http;
    this.clock = clock;
    const store = options.store ?? openTestStore(path);
    this.log = wrapLog?.(store.log) ?? store.log;
    this.store = { ...store, log: this.log };
    const onFatal = (error: unknown) => void this.defects.push(error);
    const onFailure = ({ status, error }: Failure) => void (status === 500 && this.defects.push(error));
    const ages = { maxAgeSeconds: 300, maxSkewSeconds: 60 };
    const agentRate = options.agentRate ?? new RateLimit(RATE);
    const rules = { limits: { ...LIMITS, ...limits }, ages, permits, stateCacheBytesMax, commitQueueMax };
    this.forum = new Forum({ store: this.store, agentRate, clock: clock.read, onFatal, ...rules });
    const chainStatus = () => ({ ok: true, details: {} });
    const given = { publicUrls, allowUnsigned, maxBodyBytes };
    const settings = {
      networkOf: () => '127.0.0.1',
      requireRegistration: () => {},
      env: 'test',
      version: '1.2.3',
      chainStatus,
      agentRate,
      responseCacheBytesMax: 16_777_216,
      todoWatches: new TodoWatches(this.forum),
      waits: new Quota(2, 'waiting requests of this agent'),
      liveness: new Liveness({ pingIntervalMs: 30_000, deadAfterMs: 60_000 }),
      onFailure,
    };
    this.app = createApp({ forum: this.forum, verify, ...given, ...settings }, (first) =>
      pageRoutes(first, {
        forum: this.forum,
        headers: CORS_HEADERS,
        cacheBytesMax: 16_777_216,
        relayerProblem: () => undefined,
      }),
    );
    this.#baseUrl = publicUrls[0] ?? PUBLIC_URL;
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

  /** A registered agent. */
  async agent(registration: Readonly<Record<string, unknown>> = {}): Promise<Signer> {
    const signer = new Signer();
    await this.must('POST', '/register', { body: { ...registrationOf(signer), ...registration } });
    return signer;
  }

  async lines(chamberId: number): Promise<readonly string[]> {
    const { ndjson } = await this.log.readPage(chamberId, 0, 10_000);
    return ndjson.toString().split('\n').slice(0, -1);
  }

  async events(chamberId: number): Promise<readonly ForumEvent[]> {
    return (await this.lines(chamberId)).map((line) => JSON.parse(line));
  }

  async close(): Promise<void> {
    this.#closing ??= this.store.close();
    await this.#closing;
  }
}

export function registrationOf({ pubkeyHex }: Signer) {
  return { pubkeyHex, walletAddress: `0x${'ab'.repeat(20)}`, operatorEmail: 'op@example.org', personality: {} };
}
