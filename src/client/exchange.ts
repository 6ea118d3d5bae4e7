// One request and its answer, however often it takes: a lost answer is asked for again with the same bytes, which the
// service answers as it did the first time. So a move happens once, whatever the network does.
import { parseServiceTime, readAnswer } from './answer.ts';
import { ClientError } from './error.ts';
import { leash } from './leash.ts';
import { backoffMillis, pause } from './pause.ts';
import type { ServiceClock, Span } from './service-clock.ts';
import { type Signer, signatureHeaders } from './signing.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A service as the library sees it. */
export interface Service {
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly clock: ServiceClock;
  readonly fetch: Fetch;
  /** How long a call that certainly changed nothing is tried, in milliseconds. */
  readonly patienceMillis: number;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** From the base URL on, with its query. */
  readonly path: string;
  readonly body?: object;
  readonly signer?: Signer;
  /** Whether the answer is JSON, the default, or lines of it. */
  readonly answer?: 'json' | 'text';
}

interface Prepared {
  readonly url: string;
  readonly init: RequestInit;
}

type Outcome =
  | { readonly kind: 'answered'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly error: ClientError }
  /** `isUnknown`: the request may have been accepted although no answer came. */
  | { readonly kind: 'lost'; readonly error: ClientError; readonly isUnknown: boolean; readonly waitMillis?: number };

const ATTEMPT_MILLIS = 15_000;
/** A signature's age is refused from minutes on; from here on a refused one is made again by the service's clock. */
const CLOCK_TOLERANCE_MILLIS = 30_000;

/**
 * The body of the answer. Refusals throw; a signed command whose fate is unknown is tried until it is known or the signal
 * calls it off, anything else until the service's patience is over. A request refused for its age is signed once more.
 */
export async function exchange(service: Service, call: Call, signal?: AbortSignal): Promise<unknown> {
  let prepared = prepare(service, call);
  let isResigned = false;
  let isUnknown = false;
  const giveUpAt = service.clock.local() + service.patienceMillis;
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptOnce(service, prepared, call, signal);
    if (outcome.kind === 'answered') return outcome.value;
    if (outcome.kind === 'refused') {
      if (isResigned || !learnsTime(service, call, outcome.error)) throw outcome.error;
      prepared = prepare(service, call);
      isResigned = true;
      continue;
    }
    isUnknown ||= outcome.isUnknown && call.method !== 'GET' && call.signer !== undefined;
    const waitMillis = outcome.waitMillis ?? backoffMillis(attempt);
    if (!isUnknown && service.clock.local() + waitMillis > giveUpAt) throw outcome.error;
    await pause(waitMillis, signal);
  }
}

function prepare({ baseUrl, clock }: Service, { method, path, body, signer }: Call): Prepared {
  const url = new URL(baseUrl + path).href;
  const text = body === undefined ? '' : JSON.stringify(body);
  const signature =
    signer === undefined ? {} : signatureHeaders(signer, { method, targetUri: url, body: text }, clock.now());
  // A redirect would lead to a URL that was not signed.
  const init = { method, redirect: 'manual' as const, headers: { ...signature } };
  if (body === undefined) return { url, init };
  return { url, init: { ...init, headers: { ...signature, 'Content-Type': 'application/json' }, body: text } };
}

async function attemptOnce(service: Service, prepared: Prepared, call: Call, signal?: AbortSignal): Promise<Outcome> {
  signal?.throwIfAborted();
  const sentAt = service.clock.local();
  const limit = leash(signal, ATTEMPT_MILLIS);
  try {
    const response = await service.fetch(prepared.url, { ...prepared.init, signal: limit.signal });
    const text = await response.text();
    learnDate(service, response, { sentAt, receivedAt: service.clock.local() });
    return judge(service, call, response, text);
  } catch (cause) {
    signal?.throwIfAborted();
    const reason = reasonOf(cause);
    const detail = `no answer from ${service.baseUrl}: ${reason}`;
    const error = new ClientError('CLIENT_ERR_UNREACHABLE', detail, { cause });
    return { kind: 'lost', error, isUnknown: !NEVER_SENT.test(reason) };
  } finally {
    limit.release();
  }
}

function judge(service: Service, call: Call, response: Response, text: string): Outcome {
  const answer = readAnswer(service.baseUrl, call.answer ?? 'json', response, text);
  if (!(answer instanceof ClientError)) return { kind: 'answered', value: answer };
  if (!answer.retryable) return { kind: 'refused', error: answer };
  // A gateway's words say nothing of what became of the request; the service's own do.
  const isUnknown = answer.code === 'CLIENT_ERR_UNREACHABLE';
  const seconds = Number(response.headers.get('Retry-After') ?? Number.NaN);
  return { kind: 'lost', error: answer, isUnknown, ...(seconds >= 0 ? { waitMillis: seconds * 1000 } : {}) };
}

/** What Node's fetch says of requests that never left; browsers do not tell. */
const NEVER_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT|ERR_TLS|ERR_SSL|bad port/;

function reasonOf(error: unknown): string {
  const { cause = error } = (error ?? {}) as { readonly cause?: unknown };
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return String(code ?? message ?? error);
}

/** The Date header has whole seconds; browsers show it only where the service exposes it. */
function learnDate({ clock }: Service, response: Response, span: Span): void {
  const earliest = Date.parse(response.headers.get('Date') ?? '');
  if (!Number.isNaN(earliest)) clock.learn({ earliest, latest: earliest + 999, isHearsay: true }, span);
}

/** Whether the refusal of a signature tells a time so far from ours that a new signature will do better. */
function learnsTime({ clock }: Service, { signer }: Call, error: ClientError): boolean {
  const told =
    error.code === 'FORUM_ERR_SIGNATURE' && signer !== undefined ? parseServiceTime(error.detail) : undefined;
  if (told === undefined || Math.abs(told - clock.now()) < CLOCK_TOLERANCE_MILLIS) return false;
  const at = clock.local();
  clock.learn({ earliest: told, latest: told }, { sentAt: at, receivedAt: at });
  return true;
}
