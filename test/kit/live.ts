// The whole service in this process, on a free port, its clock in the hand of the test.
import { pino } from 'pino';
import { afterEach } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/server.ts';
import { TestClock } from './clock.ts';
import { Signer } from './signer.ts';
import { prepare, registrationOf, send, type WireAnswer } from './wire.ts';

export interface LiveOptions {
  readonly clock?: TestClock;
  readonly settings?: Readonly<Record<string, string>>;
  /** Told of each line that the service logs. */
  readonly onLog?: (line: string) => void;
}

const PUBLIC_URL = 'http://live.test';
const open = new Set<Live>();
afterEach(async () => {
  for (const live of open) await live.stop();
});

export class Live {
  readonly clock: TestClock;
  readonly service: Service;
  readonly fatal: unknown[];

  private constructor(service: Service, clock: TestClock, fatal: unknown[]) {
    this.service = service;
    this.clock = clock;
    this.fatal = fatal;
    open.add(this);
  }

  static async start({ clock = new TestClock(), settings = {}, onLog = () => {} }: LiveOptions = {}): Promise<Live> {
    const fatal: unknown[] = [];
    const base = { PORT: '0', DATABASE_PATH: ':memory:', CHAIN: 'none', PUBLIC_URL, VERIFIER_THREADS: '1' };
    const config = readConfig({ ...base, ...settings });
    const service = await startService({
      config,
      logger: pino({ level: config.LOG_LEVEL }, { write: onLog }),
      version: 'test',
      clock: clock.read,
      onFatal: (error) => fatal.push(error),
    });
    return new Live(service, clock, fatal);
  }

  get url(): string {
    return this.service.url;
  }

  prepare(method: string, path: string, call: { readonly by?: Signer; readonly body?: unknown } = {}) {
    return prepare(method, path, { ...call, publicUrl: PUBLIC_URL, now: this.clock.read() });
  }

  call(
    method: string,
    path: string,
    call: { readonly by?: Signer; readonly body?: unknown } = {},
  ): Promise<WireAnswer> {
    return send(this.url, this.prepare(method, path, call));
  }

  /** Sends what has to succeed, and gives the body of the answer. */
  async must(method: string, path: string, call?: { readonly by?: Signer; readonly body?: unknown }) {
    const { status, body } = await this.call(method, path, call);
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** A registered agent. */
  async agent(): Promise<Signer> {
    const signer = new Signer();
    await this.must('POST', '/register', { body: registrationOf(signer) });
    return signer;
  }

  /** A chamber of that name with these deadlines, joined by its creator. */
  async chamber(by: Signer, deadlines: Readonly<Record<string, string>>): Promise<number> {
    const { chamberId } = await this.must('POST', '/chambers', { by, body: { name: 'Test', ...deadlines } });
    await this.must('POST', `/chambers/${chamberId}/join`, { by });
    return chamberId;
  }

  async phase(chamberId: number): Promise<string> {
    return (await this.must('GET', `/chambers/${chamberId}`)).phase;
  }

  async stop(): Promise<void> {
    if (open.delete(this)) await this.service.stop();
  }
}
