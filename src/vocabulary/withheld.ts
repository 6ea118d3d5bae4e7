// The member `withheld` of a stub, the line that replaces an event's line after the service has withheld the texts.
import { type Hex, instantOf, LOG_ID } from './values.ts';

export const WITHHOLD_REASONS = ['personal-data', 'secret', 'abuse', 'law'] as const;
export type WithholdReason = (typeof WITHHOLD_REASONS)[number];

/** The service's signed statement about the original line. */
export interface Withheld {
  /** ISO 8601 UTC with milliseconds. */
  readonly at: string;
  /** The service's public key for receipts: 32 bytes in base64url. */
  readonly key: string;
  /** The key's thumbprint (RFC 7638). */
  readonly keyid: string;
  /** The leaf of the original line, which is also the stub's leaf. */
  readonly leaf: Hex;
  readonly log: string;
  readonly reason: WithholdReason;
  /** Ed25519, 64 bytes in base64url. */
  readonly signature: string;
}

/** The format of each member, in the order of the canonical form. */
export const WITHHELD_FORMS: Readonly<Record<keyof Withheld, RegExp>> = {
  at: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/,
  key: /^[A-Za-z0-9_-]{43}$/,
  keyid: /^[A-Za-z0-9_-]{43}$/,
  leaf: /^0x[0-9a-f]{64}$/,
  log: LOG_ID,
  reason: new RegExp(`^(?:${WITHHOLD_REASONS.join('|')})$`),
  signature: /^[A-Za-z0-9_-]{85}[AQgw]$/,
};

/** Returns the problem of a malformed value: a missing, unknown or invalid member. */
export function withheldProblem(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'withheld is not an object';
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(WITHHELD_FORMS, name));
  if (unknown !== undefined) return `withheld has the unknown member ${JSON.stringify(unknown.slice(0, 60))}`;
  for (const [name, form] of Object.entries(WITHHELD_FORMS)) {
    const member = Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
    if (member === undefined) return `withheld lacks ${name}`;
    if (typeof member !== 'string' || !form.test(member)) return `withheld has an invalid ${name}`;
  }
  return Number.isNaN(instantOf((value as Withheld).at)) ? 'withheld has an invalid at' : undefined;
}

/** Replaces a withheld text in a required member. */
export const WITHHELD_TEXT = '[withheld]';
