// Sets the Date header from the service's clock, because auditors and clients use it as a bound on the time of the response. The
// machine's clock differs if the service follows a database's clock, or after a jump.
import { ServerResponse } from 'node:http';
import type { Millis } from '../vocabulary/values.ts';

/** Returns a ServerResponse for node:http with its Date from `now`. */
export function datedResponses(now: () => Millis): typeof ServerResponse {
  const date = httpDates(now);
  class DatedResponse extends ServerResponse {
    // For a response that begins with write or end, Node calls this method without headers.
    override writeHead(status: number, ...rest: readonly unknown[]): this {
      const headers = rest.at(-1);
      // Setting a header first would make Node copy all headers.
      const isRecord = typeof headers === 'object' && headers !== null && !Array.isArray(headers);
      const dated = isRecord ? [...rest.slice(0, -1), { ...headers, Date: date() }] : rest;
      if (!isRecord) this.setHeader('Date', date());
      // The type covers one overload, but calls of all overloads end here.
      return super.writeHead(status, ...(dated as []));
    }
  }
  // ServerResponse is generic in the request; the subclass is not.
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
