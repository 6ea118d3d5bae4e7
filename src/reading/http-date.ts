// Parses dates in response headers (RFC 9110, 5.6.7), in the only form that senders may generate, and dates in certificates as OpenSSL
// prints them.
import type { Millis } from '../vocabulary/values.ts';

const OF_CERTIFICATE = /^[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4} GMT$/;
const IMF_FIXDATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** NaN for a missing header or another form. Date.parse would use the machine's time zone. */
export function httpInstantOf(text: string | null | undefined): Millis {
  return typeof text === 'string' && IMF_FIXDATE.test(text) ? Date.parse(text) : Number.NaN;
}

/** NaN for any other text. */
export function certificateInstantOf(text: string): Millis {
  return OF_CERTIFICATE.test(text) ? Date.parse(text) : Number.NaN;
}
