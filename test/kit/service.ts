// Runs the complete service on a free port of 127.0.0.1, without a chain, with a clock that the test moves.
import { connect } from 'node:net';
import { type Logger, pino } from 'pino';
import { afterAll, beforeAll } from 'vitest';
import type { Service } from '../../src/service/start.ts';
import { deadlinesFrom } from './chambers.ts';
import { TestClock } from './clock.ts';
import { openService, type Settings } from './open-service.ts';
import { Signer } from './signer.ts';
import { storeSettings } from './store.ts';
import { atEnd } from './temporary.ts';
import { registrationOf } from './test-service.ts';

export interface Running {
  readonly service: Service;
  readonly url: string;
  readonly clock: TestClock;
  stop(): Promise<void>;
}

/** Starts a service that stops at the end of the test. */
export async function run(settings: Settings = {}, clock = new TestClock(), logger?: Logger): Promise<Running> {
  const store = 'DATABASE_PATH' in settings ? {} : await storeSettings();
  const { running, end } = await start({ ...store, ...settings }, clock, logger);
  atEnd(end);
  return running;
}

/** Starts a service for all tests of a file or a describe block, with its log in SQLite. Its members are set once it has started. */
export function sharedService(settings: Settings = {}): Running {
  const shared = {} as Running;
  let end = async () => {};
  beforeAll(async () => {
    const started = await start(settings);
    end = started.end;
    Object.assign(shared, started.running);
  });
  afterAll(() => end());
  return shared;
}

async function start(settings: Settings, clock = new TestClock(), logger: Logger = pino({ level: 'silent' })) {
  const fatal: unknown[] = [];
  const service = await openService(
    { VERIFIER_THREADS: '1', ...settings },
    { clock: clock.source, logger, onFatal: (error) => void fatal.push(error) },
  );
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= service.stop();
    return stopping;
  };
  const end = async () => {
    await stop();
    if (fatal.length > 0) throw fatal[0];
  };
  return { running: { service, url: service.url, clock, stop }, end };
}

/** Sends a signed request that must succeed, and returns the body of the response. */
export async function call(
  { url, clock }: Running,
  by: Signer,
  [method, path, body]: readonly [string, string, unknown?],
) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = by.sign({ method, url: url + path, body: text, created: clock.seconds });
  const type = text === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(url + path, { method, headers: { ...headers, ...type }, body: text ?? null });
  // biome-ignore lint/suspicious/noExplicitAny: responses are JSON, which every test reads in its own way
  const answer: any = await response.json();
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

export async function newAgent(running: Running): Promise<Signer> {
  const signer = new Signer();
  await call(running, signer, ['POST', '/register', registrationOf(signer)]);
  return signer;
}

/** Creates a chamber in LOBBY, and returns its id. */
export async function createChamber(running: Running, by: Signer, changes: object = {}): Promise<number> {
  const body = { name: 'Test', ...deadlinesFrom(running.clock.read()), ...changes };
  return (await call(running, by, ['POST', '/chambers', body])).chamberId;
}

/** Creates a chamber in DEBATE with two events and one member, who has the turn. */
export async function debating(
  running: Running,
): Promise<{ by: Signer; id: number; debate: (comment: string) => Promise<number> }> {
  const by = await newAgent(running);
  const body = { name: 'Test', ...deadlinesFrom(running.clock.read()) };
  const { chamberId: id } = await call(running, by, ['POST', '/chambers', body]);
  await call(running, by, ['POST', `/chambers/${id}/join`]);
  running.clock.set(Date.parse(body.proposalDeadline));
  const debate = async (comment: string) =>
    (await call(running, by, ['POST', `/chambers/${id}/debate`, { comment }])).eventId;
  return { by, id, debate };
}

/** Starts a service with a chamber in DEBATE. */
export async function runDebating(settings?: Settings) {
  const running = await run(settings);
  return { running, ...(await debating(running)) };
}

/** Writes bytes to the service, and returns everything that it sends until it closes the connection. */
export function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes, 'latin1'));
    let answer = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      answer += chunk;
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(answer));
  });
}
