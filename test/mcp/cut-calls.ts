// Cancels calls at given points, and prepares a chamber so that a tool can be called.
import type { Fetch } from '../../src/reading/response.ts';
import { enterPhase } from '../kit/chambers.ts';
import type { Played } from './seat-in-process.ts';

export const TURN_MILLIS = 60_000;
export const PACE = { turnSeconds: TURN_MILLIS / 1_000 };

/** Long enough for a call in this process whose commands are not cut off. */
export const CALL_MILLIS_MAX = 250;

/** The point at which a command of the seat is cut off. */
export const CUT = [
  ...(['before the request', 'after the answer', 'between'] as const),
  ...(['by the caller', 'by the caller, after it', 'nowhere'] as const),
];

export interface Network {
  cut: (typeof CUT)[number];
  /** Commands to which the service has responded. */
  accepted: number;
}

/** Makes commands fail like a broken network; reads succeed. */
export function through(network: Network, fetch: Fetch): Fetch {
  return async (url, init) => {
    if (init.method === 'GET') return await fetch(url, init);
    if (network.cut === 'before the request') throw lost();
    const answered = fetch(url, init).then((response) => {
      if (response.ok) network.accepted++;
      return response;
    });
    if (network.cut === 'between') {
      answered.catch(() => {});
      await new Promise(setImmediate);
      throw lost();
    }
    const response = await answered;
    if (network.cut === 'after the answer') throw lost();
    return response;
  };
}

function lost(): Error {
  return Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) });
}

export const inTurn =
  (phase: 'PROPOSAL' | 'DEBATE') =>
  async ({ seat: { service }, other, chamberId }: Played) => {
    await enterPhase(service, chamberId, 'PROPOSAL');
    await service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body: { name: 'Idea', ticker: 'ONE' } });
    if (phase === 'DEBATE') await enterPhase(service, chamberId, 'DEBATE');
    await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
  };
export const idea = { name: 'Rain', ticker: 'RAIN', description: 'wet' };
