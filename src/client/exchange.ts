// One request and its response, over as many attempts as needed. A request whose response was lost is sent again with the same bytes,
// and the service repeats its first response, so a move is made exactly once.
import { listOf } from '../reading/shape.ts';
import { backoffMillis } from '../reading/waiting.ts';
import { instantOf, type Millis } from '../vocabulary/values.ts';
import { attempt, type Exchanged, prepare } from './attempt.ts';
import type { Call, Service } from './call.ts';
import type { ClientError } from './error.ts';
import { ANY_OBJECT } from './shapes.ts';
import { type ServiceClock, steadyMillis, TimeTried } from './time.ts';

/** The service accepts signatures that are minutes old; below this difference a new signature would not help. */
const CLOCK_TOLERANCE_MILLIS = 30_000;

/**
 * Returns the body of the response, checked against the call's shape, which covers less than `Result`. Rejections throw. A signed command
 * with an unknown outcome is retried until the outcome is known or the signal aborts, anything else for patienceMillis, or for
 * firstPatienceMillis while the service has never responded. A request whose signature is rejected for its age is signed once more. A
 * response beyond the limits throws CLIENT_ERR_TOO_LARGE and is not requested again.
 */
export async function exchange<Result>(service: Service, call: Call, signal?: AbortSignal): Promise<Result> {
  return (await exchangeWhole<Result>(service, call, signal)).value;
}

/** Like exchange, but also returns the headers of the response. */
export async function exchangeWhole<Result>(
  service: Service,
  call: Call,
  signal?: AbortSignal,
): Promise<Exchanged<Result>> {
  const { clock, contact, patienceMillis, firstPatienceMillis, onRetry } = service;
  const isCommand = call.method !== 'GET' && (call.signer ?? call.sent) !== undefined;
  if (isCommand && !contact.isMade) await makeContact(service, signal);
  let request = await prepare(service, call);
  let isResigned = false;
  let isUnknown = false;
  const tried = new TimeTried(clock.local);
  for (let failures = 0; ; failures++) {
    const outcome = await attempt(service, request, signal);
    if ('value' in outcome) return outcome as Exchanged<Result>;
    const triedMillis = tried.after(request.wholeMillisMax);
    const { error, askedMillis = 0 } = outcome;
    if (!error.retryable) {
      const isOfSignature = error.code === 'FORUM_ERR_SIGNATURE' && call.signer !== undefined;
      // Two nodes whose clocks differ would have it signed for ever, unless the signature has aged meanwhile.
      const isFresh = steadyMillis(clock.local) - request.signedAtSteady < CLOCK_TOLERANCE_MILLIS;
      if ((isResigned && isFresh) || !isOfSignature || !learnTime(clock, error, request.signedAt)) throw error;
      request = await prepare(service, call);
      isResigned = true;
      isUnknown = false;
      continue;
    }
    isUnknown ||= outcome.isUnknown && isCommand;
    const waitMillis = backoffMillis(failures, askedMillis);
    const limitMillis = contact.isMade ? patienceMillis : firstPatienceMillis;
    if (!isUnknown && triedMillis + Math.max(waitMillis, askedMillis) > limitMillis) throw error;
    onRetry({ error, waitMillis });
    await clock.local.sleep(waitMillis, signal);
    tried.after(waitMillis);
  }
}

/**
 * A command is sent only to a service that has responded, so a wrong URL or a captive portal is detected before anything is sent.
 * Afterwards, a response from anything else leaves the outcome unknown.
 */
async function makeContact(service: Service, signal: AbortSignal | undefined): Promise<void> {
  await exchange(service, { method: 'GET', path: '/chambers?limit=1', shape: listOf(ANY_OBJECT) }, signal);
}

/** Returns true if the error names a service time so far from ours that a new signature may be accepted. */
export function learnTime(clock: ServiceClock, { serviceTime = '' }: ClientError, signedAt: Millis): boolean {
  const at = instantOf(serviceTime);
  // Compared with the signature's time: another request may have learned the difference meanwhile.
  if (Number.isNaN(at) || Math.abs(at - signedAt) < CLOCK_TOLERANCE_MILLIS) return false;
  const now = clock.local.now();
  clock.learn({ earliest: at, latest: at }, { sentAt: now, receivedAt: now });
  return true;
}
