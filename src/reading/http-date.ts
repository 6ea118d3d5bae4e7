// Dates in the headers of responses (RFC 9110, 5.6.7), in the one form that senders may generate, and of certificates, as OpenSSL writes them.
import type { Millis } from '../vocabulary/values.ts';

const OF_CERTIFICATE = /^[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4} GMT$/;
const IMF_FIXDATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** NaN for a header that is missing, or of another form: Date.parse would read that in the time zone of the machine. */
export function httpInstantOf(text: string | null | undefined): Millis {
  return typeof text === 'string' && IMF_FIXDATE.test(text) ? Date.parse(text) : Number.NaN;
}

/** NaN for any other text. */
export function certificateInstantOf(text: string): Millis {
  return OF_CERTIFICATE.test(text) ? Date.parse(text) : Number.NaN;
}
