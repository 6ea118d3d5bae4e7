// The Date header, from the service's clock: auditors and clients take it as a bound on the time of the response. The machine's clock
// differs if the service follows a database's clock, or after a jump.
import { ServerResponse } from 'node:http';
import type { Millis } from '../vocabulary/values.ts';

/** A ServerResponse for node:http whose Date is from `now`. */
export function datedResponses(now: () => Millis): typeof ServerResponse {
  const date = httpDates(now);
  class DatedResponse extends ServerResponse {
    // Node also calls it, without headers, for a response that begins with write or end.
    override writeHead(status: number, ...rest: readonly unknown[]): this {
      const headers = rest.at(-1);
      // A header that is set before the call makes Node copy all others.
      const isRecord = typeof headers === 'object' && headers !== null && !Array.isArray(headers);
      const dated = isRecord ? [...rest.slice(0, -1), { ...headers, Date: date() }] : rest;
      if (!isRecord) this.setHeader('Date', date());
      // The type of one overload; all go through here.
      return super.writeHead(status, ...(dated as []));
    }
  }
  // The type of the class is generic in the request; the subclass is not.
  return DatedResponse as typeof ServerResponse;
}

function httpDates(now: () => Millis): () => string {
  let second = Number.NaN;
  let text = '';
  return () => {
    const current = Math.floor(now() / 1000);
    if (current !== second) {
      second = current;
      text = new Date(current * 1000).toUTCString();
    }
    return text;
  };
}
