// What came of each request, for metrics and the debug log. Installed only where somebody asks for it.
import type { HttpBindings } from '@hono/node-server';
import type { Millis } from '../vocabulary/values.ts';
import type { Fetch } from './request-hardening.ts';

export interface Answered {
  readonly incoming: HttpBindings['incoming'];
  /** 101 for an accepted upgrade. */
  readonly status: number;
  /** From the request's head to the answer's. */
  readonly millis: Millis;
}

export function withObserver(fetch: Fetch, onAnswered: (answered: Answered) => void): Fetch {
  return async (request, env) => {
    const started = performance.now();
    const response = await fetch(request, env);
    const isUpgraded = env.outgoing === undefined && response.status === 200;
    const status = isUpgraded ? SWITCHING_PROTOCOLS : response.status;
    onAnswered({ incoming: env.incoming, status, millis: performance.now() - started });
    return response;
  };
}

const SWITCHING_PROTOCOLS = 101;
