// A real service with a test clock; every response is checked against its own OpenAPI document.

import { expect } from 'vitest';
import { freePort } from '../../src/demo/free-port.ts';
import type { Service } from '../../src/service/start.ts';
import type { ErrorCode } from '../../src/vocabulary/errors.ts';
import { JUDGES } from '../judges/installed.ts';
import { AdvancedClock, passing } from '../kit/clock.ts';
import { openService, type Settings } from '../kit/open-service.ts';
import type { Signer } from '../kit/signer.ts';
import { prepare } from '../kit/wire.ts';
import { type Described, describedBy } from './described.ts';
import { prismFindings, startPrism } from './prism.ts';

export interface LiveService {
  /** The URL of the service itself; calls go through Prism in `npm run judges`. */
  readonly url: string;
  /** Its public address, for which agents and wallets sign. */
  readonly baseUrl: string;
  readonly service: Service;
  readonly described: Described;
  advance(seconds: number): void;
  now(): number;
  call(method: string, path: string, options?: CallOptions): Promise<{ body: unknown; response: Response }>;
  stop(): Promise<void>;
}

interface CallOptions {
  /** Sent as JSON; text is sent unchanged. */
  readonly body?: unknown;
  readonly by?: Signer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Past Prism, which rejects some requests itself. */
  readonly isDirect?: boolean;
  /** The expected error code; absent if the request is accepted. */
  readonly failsWith?: ErrorCode;
}

export async function startLive(settings: Settings = {}): Promise<LiveService> {
  const clock = new AdvancedClock();
  const judged = JUDGES === undefined ? {} : { PUBLIC_URL: `http://127.0.0.1:${await freePort()}` };
  const service = await openService({ ...judged, ...settings }, { clock: passing(clock.read) });
  const { url } = service;
  const described = await describedBy(url);
  const { PUBLIC_URL: baseUrl = url } = judged;
  const prism = JUDGES === undefined ? undefined : await startPrism({ publicUrl: baseUrl, upstream: url });
  return { url, baseUrl, service, described, now: clock.read, call, advance, stop };

  async function stop(): Promise<void> {
    await prism?.stop();
    await service.stop();
  }

  function advance(seconds: number): void {
    clock.advance(seconds * 1000);
  }

  async function call(
    method: string,
    path: string,
    { body, by, headers = {}, isDirect = false, failsWith }: CallOptions = {},
  ) {
    const sent = prepare(method, path, { by, body, publicUrl: baseUrl, now: clock.read() });
    const init = { method, headers: { ...sent.headers, ...headers }, body: sent.body ?? null };
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
