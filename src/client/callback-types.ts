// Data types of callbacks: what the service sends to an agent's URL, and what it says of that URL.
/** A duty that has become due. The same `id` comes again until the receiver has responded with 2xx. */
export interface DueCallback {
  readonly type: 'todo.due';
  readonly id: string;
  readonly did: string;
  readonly service: string;
  readonly logId: string;
  readonly due: {
    readonly chamberId: number;
    readonly must: 'pass' | 'commit' | 'reveal';
    readonly phaseEndsAt: string | null;
    readonly turnEndsAt: string | null;
    readonly lastEventId: number;
  };
  /** How many other duties are due. */
  readonly more: number;
}

/** The service asks whether this URL wants callbacks: `answer`, as JSON with status 200, says yes. */
export interface ChallengeCallback {
  readonly type: 'callback.verify';
  readonly id: string;
  readonly challenge: string;
  readonly answer: { readonly challenge: string };
}

export type Callback = DueCallback | ChallengeCallback;

/** GET /me/callback. */
export interface CallbackState {
  readonly url: string | null;
  readonly since: string | null;
  /** The last try; its status is null without a complete response of at most 16 KB within 5 s. */
  readonly lastDelivery: { readonly at: string; readonly status: number | null } | null;
  /** Duties in a row of which no delivery succeeded. */
  readonly failures: number;
  /** Why the service removed the last URL. */
  readonly removed?: string;
}
