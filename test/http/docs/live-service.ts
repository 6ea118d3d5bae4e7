// A real service, every response checked against its own OpenAPI document, with a clock that is moved by hand.
import { pino } from 'pino';
import { expect } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { type Service, startService } from '../../../src/server.ts';
import type { ErrorCode } from '../../../src/vocabulary/errors.ts';
import type { Signer } from '../../kit/signer.ts';
import { type Described, describedBy } from './described.ts';

export interface LiveService {
  readonly url: string;
  readonly service: Service;
  readonly described: Described;
  advance(seconds: number): void;
  now(): number;
  call(method: string, path: string, options?: CallOptions): Promise<{ body: unknown; response: Response }>;
  stop(): Promise<void>;
}

interface CallOptions {
  /** Sent as JSON, or as it is where it is text. */
  readonly body?: unknown;
  readonly by?: Signer;
  readonly headers?: Readonly<Record<string, string>>;
  /** The expected error code; absent where the request is accepted. */
  readonly failsWith?: ErrorCode;
}

export async function startLive(settings: Readonly<Record<string, string>> = {}): Promise<LiveService> {
  let aheadMillis = 0;
  const now = () => Date.now() + aheadMillis;
  const service = await startService({
    config: readConfig({ PORT: '0', DATABASE_PATH: ':memory:', CHAIN: 'none', ...settings }),
    logger: pino({ level: 'silent' }),
    version: 'test',
    clock: now,
    onFatal: (error) => {
      throw error;
    },
  });
  const { url } = service;
  const described = await describedBy(url);
  return { url, service, described, now, call, advance, stop: () => service.stop() };

  function advance(seconds: number): void {
    aheadMillis += seconds * 1000;
  }

  async function call(method: string, path: string, { body, by, headers = {}, failsWith }: CallOptions = {}) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const created = Math.floor(now() / 1000);
    const signature = by?.sign({ method, url: url + path, body: text, created }) ?? {};
    const type = text === undefined ? {} : { 'content-type': 'application/json' };
    const init = {
      method,
      headers: { ...type, ...signature, ...headers },
      ...(text === undefined ? {} : { body: text }),
    };
    const response = await fetch(url + path, init);
    const received = await response.text();
    const problems = described.problemsOf({ method, path, response, text: received });
    expect(problems, `${method} ${path} → ${response.status} ${received}`).toEqual([]);
    const parsed = parse(received);
    expect((parsed as { error?: string } | undefined)?.error, received).toBe(failsWith);
    return { body: parsed, response };
  }
}

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
