// Parses dates in response headers (RFC 9110, 5.6.7), only in the format that senders may generate, and OpenSSL's dates in certificates.
import type { Millis } from '../vocabulary/values.ts';

const CERTIFICATE_DATE = /^[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4} GMT$/;
const IMF_FIXDATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Returns NaN for a missing header or any other format: Date.parse would assume the machine's time zone. */
export function httpInstantOf(text: string | null | undefined): Millis {
  return typeof text === 'string' && IMF_FIXDATE.test(text) ? Date.parse(text) : Number.NaN;
}

/** Returns NaN for any other format. */
export function certificateInstantOf(text: string): Millis {
  return CERTIFICATE_DATE.test(text) ? Date.parse(text) : Number.NaN;
}
