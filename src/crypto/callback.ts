// Callbacks: the service's requests to an agent's URL, signed (RFC 9421) with the receipts key. The receiver recognises repeated attempts
// by the webhook-id header (Standard Webhooks).
import { sha256 } from '@noble/hashes/sha2.js';
import { base64urlnopad } from '@scure/base';
import type { Terms } from './receipt.ts';
import { signatureBaseOf } from './signature-base.ts';

export const CALLBACK_TAG = 'chamber-callback';
export const CALLBACK_LABEL = 'callback';

/** The components that a callback's signature must cover, exactly. */
export const CALLBACK_COMPONENTS = [
  '@method',
  '@target-uri',
  'content-digest',
  'webhook-id',
  'webhook-timestamp',
] as const;
type CallbackComponent = (typeof CALLBACK_COMPONENTS)[number];

export type SignedCallback = Readonly<Record<CallbackComponent, string>>;

/** Returns the value of "@signature-params" as the service writes it. */
export function callbackParams({ created, keyid }: Terms): string {
  const covered = CALLBACK_COMPONENTS.map((component) => `"${component}"`).join(' ');
  return `(${covered});created=${created};keyid="${keyid}";alg="ed25519";tag="${CALLBACK_TAG}"`;
}

/** Returns the signed text. `components` must be in the order of `params`. */
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
  /** When the turn began, as a timestamp with milliseconds; null unless the duty is a turn. */
  readonly turnBeganAt: string | null;
}

/** Returns the webhook-id of a duty, which is the same for every attempt and on every node. */
export function webhookId({ logId, did, chamberId, must, turnBeganAt }: DutyIdentity): string {
  const identity = JSON.stringify([logId, did, chamberId, must, turnBeganAt]);
  return base64urlnopad.encode(sha256(new TextEncoder().encode(identity)));
}
