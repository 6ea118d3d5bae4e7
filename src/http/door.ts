// Who is let in at all: not a socket address that asks too often, and nobody once the service is stopping.
import type { IncomingMessage } from 'node:http';
import { ForumError } from '../vocabulary/errors.ts';
import { networkOf } from '../vocabulary/network.ts';
import { RateLimit, type RateLimits } from './rate-limit.ts';

export class Door {
  readonly #rate: RateLimit;
  #isClosed = false;

  constructor(perAddress: RateLimits) {
    this.#rate = new RateLimit(perAddress);
  }

  /** What comes from now on gets FORUM_ERR_UNAVAILABLE. */
  close(): void {
    this.#isClosed = true;
  }

  refuse({ socket }: IncomingMessage): ForumError | undefined {
    if (this.#isClosed) return stopping();
    return this.#rate.refuse(networkOf(socket.remoteAddress ?? ''), 'your address');
  }
}

function stopping(): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', 'the service is stopping, retry', { headers: { 'Retry-After': '1' } });
}
