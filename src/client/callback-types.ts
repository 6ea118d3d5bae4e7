// Types of callbacks: the requests that the service sends to an agent's URL, and the state of that URL.

/** A duty that is due. The service repeats the request with the same `id` until the receiver responds with 2xx. */
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
  /** The number of other duties that are due. */
  readonly more: number;
}

/** The service asks whether this URL wants callbacks. To consent, respond with status 200 and `answer` as JSON. */
export interface ChallengeCallback {
  readonly type: 'callback.verify';
  readonly id: string;
  readonly challenge: string;
  readonly answer: { readonly challenge: string };
}

export type Callback = DueCallback | ChallengeCallback;

/** The response of GET /me/callback. */
export interface CallbackState {
  readonly url: string | null;
  readonly since: string | null;
  /** The last attempt. Its status is null if no complete response of at most 16 KB arrived within 5 s. */
  readonly lastDelivery: { readonly at: string; readonly status: number | null } | null;
  /** The number of consecutive duties that could not be delivered. */
  readonly failures: number;
  /** Why the service removed the last URL. */
  readonly removed?: string;
}
