// Sends a request and returns its response, over as many attempts as needed. If a response was lost, the client sends the same bytes again
// and the service repeats its first response, so a move is made exactly once.
import { listOf } from '../reading/shape.ts';
import { backoffMillis } from '../reading/waiting.ts';
import { instantOf, type Millis } from '../vocabulary/values.ts';
import { attempt, type ExchangeResult, prepare } from './attempt.ts';
import type { Call, Service } from './call.ts';
import type { ClientError } from './error.ts';
import { ANY_OBJECT } from './shapes.ts';
import { type ServiceClock, steadyMillis, TimeTried } from './time.ts';

/** The service accepts signatures that are minutes old, so below this difference a new signature would not help. */
const CLOCK_TOLERANCE_MILLIS = 30_000;

/**
 * Returns the body of the response, checked against the call's shape, which covers less than `Result`. Throws the service's error. Retries
 * a signed command with an unknown outcome until the outcome is known or the signal aborts, any other request for patienceMillis, or for
 * firstPatienceMillis while the service has never responded. Signs a request once more if the service rejects its signature's age. Throws
 * CLIENT_ERR_TOO_LARGE for a response beyond the limits, and does not request it again.
 */
export async function exchange<Result>(service: Service, call: Call, signal?: AbortSignal): Promise<Result> {
  return (await exchangeWithHeaders<Result>(service, call, signal)).value;
}

/** Like exchange, but also returns the headers of the response. */
export async function exchangeWithHeaders<Result>(
  service: Service,
  call: Call,
  signal?: AbortSignal,
): Promise<ExchangeResult<Result>> {
  const { clock, contact, patienceMillis, firstPatienceMillis, onRetry } = service;
  const isCommand = call.method !== 'GET' && (call.signer ?? call.sent) !== undefined;
  if (isCommand && !contact.isMade) await makeContact(service, signal);
  let request = await prepare(service, call);
  let hasSignedAgain = false;
  let isUnknown = false;
  const tried = new TimeTried(clock.local);
  for (let failures = 0; ; failures++) {
    const outcome = await attempt(service, request, signal);
    if ('value' in outcome) return outcome as ExchangeResult<Result>;
    const triedMillis = tried.after(request.wholeMillisMax);
    const { error, requestedMillis = 0 } = outcome;
    if (!error.retryable) {
      const isSignatureError = error.code === 'FORUM_ERR_SIGNATURE' && call.signer !== undefined;
      // Two nodes with different clocks could otherwise make the client sign again indefinitely.
      const isFresh = steadyMillis(clock.local) - request.signedAtSteady < CLOCK_TOLERANCE_MILLIS;
      if ((hasSignedAgain && isFresh) || !isSignatureError || !learnTime(clock, error, request.signedAt)) throw error;
      request = await prepare(service, call);
      hasSignedAgain = true;
      isUnknown = false;
      continue;
    }
    isUnknown ||= outcome.isUnknown && isCommand;
    const waitMillis = backoffMillis(failures, requestedMillis);
    const limitMillis = contact.isMade ? patienceMillis : firstPatienceMillis;
    if (!isUnknown && triedMillis + Math.max(waitMillis, requestedMillis) > limitMillis) throw error;
    onRetry({ error, waitMillis });
    await clock.local.sleep(waitMillis, signal);
    tried.after(waitMillis);
  }
}

/**
 * Makes sure that the service has responded before a command is sent, so that a wrong URL or a captive portal is detected first. After the
 * command was sent, a response from anything else leaves the outcome unknown.
 */
async function makeContact(service: Service, signal: AbortSignal | undefined): Promise<void> {
  await exchange(service, { method: 'GET', path: '/chambers?limit=1', shape: listOf(ANY_OBJECT) }, signal);
}

/** Corrects the clock by the error's service time; returns true if the difference is so large that a new signature may be accepted. */
export function learnTime(clock: ServiceClock, { serviceTime = '' }: ClientError, signedAt: Millis): boolean {
  const at = instantOf(serviceTime);
  // The comparison is with the signature's time, because another request may have corrected the clock meanwhile.
  if (Number.isNaN(at) || Math.abs(at - signedAt) < CLOCK_TOLERANCE_MILLIS) return false;
  const now = clock.local.now();
  clock.learn({ earliest: at, latest: at }, { sentAt: now, receivedAt: now });
  return true;
}
