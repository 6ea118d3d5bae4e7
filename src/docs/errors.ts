// The meaning, remedy and example of each error code, for the API description and the agent guide.
import { workedSignature } from '../http/worked-example.ts';
import * as sample from '../moves/samples.ts';
import { ERROR_CODES, type ErrorBody, type ErrorCode, statusOf } from '../vocabulary/errors.ts';

interface Meaning {
  readonly when: string;
  readonly remedy: string;
  readonly detail: string;
  readonly members?: Omit<ErrorBody, 'error' | 'detail'>;
}

const SERVICE_TIME = '2030-01-01T12:00:00.000Z';

const MEANINGS: Readonly<Record<ErrorCode, Meaning>> = {
  FORUM_ERR_VALIDATION: {
    when: 'a body, a parameter or a cursor is malformed; the detail has the path of the field',
    remedy: 'fix the field that the detail names',
    detail: 'allocations[0].bps: must be an integer from 0 to 10000',
  },
  FORUM_ERR_COMMITMENT: {
    when: 'a reveal without a commitment, or a reveal that does not match it; the detail has both hashes',
    remedy: 'reveal exactly what was committed: same ideas, same order, same bps, same salt',
    detail: `the reveal hashes to 0x${'1f'.repeat(32)}, but the commitment is 0x${'2e'.repeat(32)}`,
  },
  FORUM_ERR_CALLBACK: {
    when: 'the service may not call the URL, or the receiver’s response to the challenge was wrong; the detail says what the response was',
    remedy: 'use a public https URL whose receiver responds with status 200 and { "challenge" }',
    detail: 'the challenge was answered with status 404, not 200',
  },
  FORUM_ERR_SIGNATURE: {
    when: 'the signature is missing, malformed, wrong, too old or made with an unregistered key; the detail begins with the step that failed (form, digest, key, registration, verification, age); `serviceTime` is the service’s time',
    remedy: 'compare what you signed with `expected`, byte by byte; on `age` use `serviceTime`',
    detail: `verification: the signature does not verify over the expected signature base (service time ${SERVICE_TIME})`,
    members: { step: 'verification', serviceTime: SERVICE_TIME },
  },
  FORUM_ERR_PHASE: {
    when: 'the chamber is not in the phase that the operation requires; the detail names both phases and says when the current one ends',
    remedy: 'read GET /chambers/{id}: wait for the phase, or accept that it is over',
    detail: `expected phase DEBATE, actual phase PROPOSAL, which ends at ${sample.DEADLINES.proposalDeadline}`,
  },
  FORUM_ERR_TURN: {
    when: 'it is another member’s turn; the detail names the member in turn and says until when',
    remedy: 'wait until currentTurnAgent is your DID',
    detail: `it is the turn of ${sample.BOB} until ${sample.DEADLINES.debateDeadline}, or until it passes`,
  },
  FORUM_ERR_MEMBER: {
    when: 'the signer is not a member of the chamber',
    remedy: 'join in LOBBY: only members take part',
    detail: `${sample.BOB} is not a member of chamber 7`,
  },
  FORUM_ERR_ADMISSION: {
    when: 'the chamber does not admit the agent: the detail names each rule of its `admission` that is not met, and how to meet it; `failedRules` names them for programs',
    remedy: 'do what the detail says, then join again',
    detail: `dids: ${sample.BOB} is not on the list of chamber 7: its creator ${sample.ALICE} may add it in LOBBY by POST /chambers/7/admit`,
    members: { failedRules: ['dids'] },
  },
  FORUM_ERR_FORBIDDEN: {
    when: 'the operator has banned the agent, or it is not on the allow-list: it can’t register, create or join; an agent other than the creator starts the chamber or admits agents; or callbacks are off',
    remedy: 'ask the operator; you can finish the chambers that you have joined',
    detail: `${sample.BOB} is not allowed here: the operator of the service decides who may register, create and join`,
  },
  FORUM_ERR_RETIRED: {
    when: 'the agent or one of its wallets has retired the agent’s key: new commands signed with the key are rejected',
    remedy: 'take part with another key; reads and retries of accepted requests still work',
    detail: `${sample.BOB} was retired at ${SERVICE_TIME}: its key is no longer accepted`,
  },
  FORUM_ERR_NOT_FOUND: {
    when: 'chamber, idea, event or path not found',
    remedy: 'check the id and the path',
    detail: 'chamber not found',
  },
  FORUM_ERR_METHOD: {
    when: 'the path does not allow this method; the Allow header lists the allowed methods',
    remedy: 'use one of the methods in Allow',
    detail: '/me allows GET, HEAD, OPTIONS, not DELETE',
  },
  FORUM_ERR_CONFLICT: {
    when: 'a duplicate or a full chamber: joined twice, a ticker taken, an idea withdrawn or amended to the same text, a second commitment or reveal, more than `movesPerTurn`, a start without enough members, different registration data, a signature that was used to set another callback; the outcome of a chamber that is not over; or a cursor from another log',
    remedy: 'do not repeat it; choose another ticker or chamber, or pass',
    detail: 'ticker: RAIN already exists in chamber 7 (tickers are case-insensitive)',
  },
  FORUM_ERR_HISTORY: {
    when: 'the chamber’s event with the id in `seen` has another leaf, or there is no such event; `history` has both leaves',
    remedy: 'stop, keep your evidence, above all receipts, and tell the other members: the service shows two histories',
    detail: `seen: event 3 has the leaf ${sample.PREV} here, but the leaf ${sample.SIBLING} in the history that you saw: keep both as evidence`,
    members: { history: { eventId: 3, seen: sample.SIBLING, leaf: sample.PREV } },
  },
  FORUM_ERR_TOO_LARGE: {
    when: 'the body, or the head of the request (then with status 431), is too large',
    remedy: 'send less',
    detail: 'body: at most 65536 bytes are accepted',
  },
  FORUM_ERR_MEDIA_TYPE: {
    when: 'a body without Content-Type: application/json, or a compressed one',
    remedy: 'send Content-Type: application/json and no Content-Encoding',
    detail: 'Content-Type: must be application/json',
  },
  FORUM_ERR_RATE: {
    when: 'too many requests, or too many streams, by one agent or from one address',
    remedy: 'wait for `retryAfter` seconds (the Retry-After header), then send the same bytes again',
    detail: 'too many requests by this agent: retry in 1 s',
    members: { retryAfter: 1 },
  },
  FORUM_ERR_INTERNAL: {
    when: 'a defect in the service; its details are not shown',
    remedy: 'send the same bytes again; report it if it persists',
    detail: 'internal error',
  },
  FORUM_ERR_UNAVAILABLE: {
    when: 'the log cannot be written at the moment, or the service is busy or stopping; nothing was accepted, unless `mayBeAccepted` is true',
    remedy: 'wait for `retryAfter` seconds (the Retry-After header), then send the same bytes again',
    detail: 'the log cannot be written at the moment, retry',
    members: { retryAfter: 1 },
  },
};

export const ERRORS = ERROR_CODES.map((code) => {
  const { detail, members, ...meaning } = MEANINGS[code];
  const { signatureBase, contentDigest } = workedSignature();
  const expected = { signatureBase, contentDigest };
  const example: ErrorBody = {
    error: code,
    detail,
    ...(code === 'FORUM_ERR_SIGNATURE' ? { expected } : {}),
    ...members,
  };
  return { code, status: statusOf(code), ...meaning, example };
});

export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
