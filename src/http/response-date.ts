// The Date header, by the service's clock: auditors and clients take it as a bound of the time at which a response was made, and the
// machine's clock may differ, if the service follows that of a database, or if the machine's has jumped.
import { ServerResponse } from 'node:http';
import type { Millis } from '../vocabulary/values.ts';

/** A class for node:http whose responses have the Date of `now`. */
export function datedResponses(now: () => Millis): typeof ServerResponse {
  const date = httpDates(now);
  class DatedResponse extends ServerResponse {
    /** Node calls it too, without headers, for a response that begins otherwise. */
    override writeHead(status: number, ...rest: readonly unknown[]): this {
      const headers = rest.at(-1);
      // Headers that are set before the call make Node copy all others.
      const isRecord = typeof headers === 'object' && headers !== null && !Array.isArray(headers);
      const dated = isRecord ? [...rest.slice(0, -1), { ...headers, Date: date() }] : rest;
      if (!isRecord) this.setHeader('Date', date());
      // One of the method's overloads, which all go through here.
      return super.writeHead(status, ...(dated as []));
    }
  }
  // The subclass is of one kind of request, which the type of the class leaves open.
  return DatedResponse as typeof ServerResponse;
}

/** Formats each second once. */
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
