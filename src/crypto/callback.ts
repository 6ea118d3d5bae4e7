// Callbacks: requests of the service to an agent's URL, which the service signs (RFC 9421) with the key of its receipts. The receiver
// recognises tries of one duty by the id (the header webhook-id of Standard Webhooks).
import { sha256 } from '@noble/hashes/sha2.js';
import { base64urlnopad } from '@scure/base';
import type { Terms } from './receipt.ts';
import { signatureBaseOf } from './signature-base.ts';

export const CALLBACK_TAG = 'chamber-callback';
export const CALLBACK_LABEL = 'callback';

/** A callback's signature covers all of these, and nothing else. */
export const CALLBACK_COMPONENTS = [
  '@method',
  '@target-uri',
  'content-digest',
  'webhook-id',
  'webhook-timestamp',
] as const;
type CallbackComponent = (typeof CALLBACK_COMPONENTS)[number];

export type SignedCallback = Readonly<Record<CallbackComponent, string>>;

/** The value of "@signature-params" as the service writes it. */
export function callbackParams({ created, keyid }: Terms): string {
  const covered = CALLBACK_COMPONENTS.map((component) => `"${component}"`).join(' ');
  return `(${covered});created=${created};keyid="${keyid}";alg="ed25519";tag="${CALLBACK_TAG}"`;
}

/** The signed text; `components` are in the order of `params`. */
export function callbackBase(
  request: SignedCallback,
  params: string,
  components: readonly CallbackComponent[] = CALLBACK_COMPONENTS,
): string {
  return signatureBaseOf(
    components.map((component) => [`"${component}"`, request[component]] as const),
    params,
  );
}

export interface DutyIdentity {
  readonly logId: string;
  readonly did: string;
  readonly chamberId: number;
  readonly must: string;
  /** When the turn began, as a timestamp with milliseconds; null for a duty that is no turn. */
  readonly turnBeganAt: string | null;
}

/** The webhook-id of a duty: the same on every try and from every node. */
export function webhookId({ logId, did, chamberId, must, turnBeganAt }: DutyIdentity): string {
  const identity = JSON.stringify([logId, did, chamberId, must, turnBeganAt]);
  return base64urlnopad.encode(sha256(new TextEncoder().encode(identity)));
}
