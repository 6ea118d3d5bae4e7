// A real service, every response checked against its own OpenAPI document, with a clock that is moved by hand.
import { pino } from 'pino';
import { expect } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { type Service, startService } from '../../src/service/start.ts';
import type { ErrorCode } from '../../src/vocabulary/errors.ts';
import { freePort } from '../deploy/recipes.ts';
import { JUDGES } from '../judges/installed.ts';
import type { Signer } from '../kit/signer.ts';
import { type Described, describedBy } from './described.ts';
import { prismFindings, startPrism } from './prism.ts';

export interface LiveService {
  /** Of the service itself; calls go through Prism in `npm run judges`. */
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
  /** Past Prism, which rejects some requests itself. */
  readonly isDirect?: boolean;
  /** The expected error code; absent where the request is accepted. */
  readonly failsWith?: ErrorCode;
}

export async function startLive(settings: Readonly<Record<string, string>> = {}): Promise<LiveService> {
  let aheadMillis = 0;
  const now = () => Date.now() + aheadMillis;
  const judged = JUDGES === undefined ? {} : { PUBLIC_URL: `http://127.0.0.1:${await freePort()}` };
  const service = await startService({
    config: readConfig({ PORT: '0', DATABASE_PATH: ':memory:', CHAIN: 'none', ...judged, ...settings }),
    logger: pino({ level: 'silent' }),
    version: 'test',
    clock: now,
    onFatal: (error) => {
      throw error;
    },
  });
  const { url } = service;
  const described = await describedBy(url);
  const { PUBLIC_URL: baseUrl = url } = judged;
  const prism = JUDGES === undefined ? undefined : await startPrism({ publicUrl: baseUrl, upstream: url });
  return { url, service, described, now, call, advance, stop };

  async function stop(): Promise<void> {
    await prism?.stop();
    await service.stop();
  }

  function advance(seconds: number): void {
    aheadMillis += seconds * 1000;
  }

  async function call(
    method: string,
    path: string,
    { body, by, headers = {}, isDirect = false, failsWith }: CallOptions = {},
  ) {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const created = Math.floor(now() / 1000);
    const signature = by?.sign({ method, url: baseUrl + path, body: text, created }) ?? {};
    const type = text === undefined ? {} : { 'content-type': 'application/json' };
    const init = {
      method,
      headers: { ...type, ...signature, ...headers },
      ...(text === undefined ? {} : { body: text }),
    };
    const response = await fetch((isDirect ? url : baseUrl) + path, init);
    const received = await response.text();
    const problems = [...described.problemsOf({ method, path, response, text: received }), ...prismFindings(response)];
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
