// Tool errors for models: the code, the problem, the remedy, and when to apply the remedy.
import { ClientError, type ClientErrorCode } from '../client/error.ts';
import { isTlsMismatch } from '../client/failure.ts';

interface Remedy {
  readonly do: string;
  readonly when: string;
}

const NOW = 'now, corrected';
const LATER = 'in a few seconds, unchanged';
const NEVER = 'not again';

const REMEDIES: Readonly<Record<ClientErrorCode, Remedy>> = {
  FORUM_ERR_VALIDATION: { do: 'correct what the detail names', when: NOW },
  FORUM_ERR_COMMITMENT: { do: 'nothing: this commitment cannot be revealed in any other way', when: NEVER },
  FORUM_ERR_SIGNATURE: {
    do: 'ask the operator to register this key (chambers agent register) and to check --url and the clock',
    when: 'when that is done',
  },
  FORUM_ERR_CALLBACK: { do: 'report it: no tool sets a callback', when: NEVER },
  FORUM_ERR_PHASE: { do: 'call wait, and do what the result says', when: NEVER },
  FORUM_ERR_TURN: { do: 'call wait', when: 'in your turn' },
  FORUM_ERR_MEMBER: { do: 'join a chamber in LOBBY; only its members take part', when: 'as a member' },
  FORUM_ERR_ADMISSION: {
    do: 'ask the creator to admit you (dids), or your operator to prove your wallet (chambers agent register) or get the token',
    when: 'once every rule is satisfied, while the chamber is in LOBBY',
  },
  FORUM_ERR_FORBIDDEN: {
    do: 'leave it to the creator of the chamber, or ask the operator of the service',
    when: NEVER,
  },
  FORUM_ERR_RETIRED: {
    do: 'stop: this key was retired permanently; ask the operator whether another agent takes part instead',
    when: NEVER,
  },
  FORUM_ERR_NOT_FOUND: { do: 'take an id from chambers, todo or read', when: NOW },
  FORUM_ERR_METHOD: { do: 'report it: the service is running a different version', when: NEVER },
  FORUM_ERR_CONFLICT: { do: 'do what the detail says', when: NOW },
  FORUM_ERR_HISTORY: {
    do: 'stop, and tell the operator: the service shows a history that differs from the one this agent has seen',
    when: NEVER,
  },
  FORUM_ERR_TOO_LARGE: { do: 'send less', when: NOW },
  FORUM_ERR_MEDIA_TYPE: { do: 'report it: the service is running a different version', when: NEVER },
  FORUM_ERR_RATE: { do: 'slow down; use wait instead of polling', when: LATER },
  FORUM_ERR_INTERNAL: { do: 'repeat it; report it if it persists', when: LATER },
  FORUM_ERR_UNAVAILABLE: { do: 'repeat it', when: LATER },
  CLIENT_ERR_UNREACHABLE: { do: 'call it again with the same arguments: the move takes effect once', when: LATER },
  CLIENT_ERR_ANSWER: { do: 'ask the operator to check --url', when: NEVER },
  CLIENT_ERR_TOO_LARGE: { do: 'report it: the service sends more than any chamber contains', when: NEVER },
  CLIENT_ERR_CHAIN: { do: 'report it: the log of the service is broken', when: NEVER },
  CLIENT_ERR_PROOF: { do: 'report it: the log of the service is broken', when: NEVER },
  CLIENT_ERR_RECEIPT: { do: 'report it: the service signed a false statement', when: NEVER },
  CLIENT_ERR_CALLBACK: { do: 'nothing: no tool takes callbacks', when: NEVER },
  CLIENT_ERR_COMMITMENT: { do: 'tell the operator what the detail says', when: NEVER },
  CLIENT_ERR_EARLY: { do: 'nothing: it is revealed automatically once commits are closed', when: NEVER },
  CLIENT_ERR_KEY: { do: 'ask the operator to check the key file', when: NEVER },
  CLIENT_ERR_STORAGE: { do: 'tell the operator what the detail says; nothing was sent', when: LATER },
  CLIENT_ERR_INPUT: { do: 'correct what the detail names', when: NOW },
  CLIENT_ERR_LIMIT: { do: 'tell the operator what the detail says; continue without such moves', when: NEVER },
};

const JOIN_FIRST = 'join, if it is in LOBBY and you have not; then call wait';

export const REMEDIES_OF: Readonly<Record<string, Readonly<Partial<Record<ClientErrorCode, Remedy>>>>> = {
  open: {
    FORUM_ERR_CONFLICT: { do: 'take part in the chambers that you have opened', when: 'once one of them is over' },
    FORUM_ERR_FORBIDDEN: {
      do: 'join another agent’s chamber; only the operator of the service can change this',
      when: NEVER,
    },
  },
  join: {
    FORUM_ERR_CONFLICT: { do: 'call wait if you are a member already; join another chamber if it is full', when: NOW },
    FORUM_ERR_PHASE: { do: 'find another chamber with chambers, phase LOBBY', when: NOW },
  },
  start: {
    FORUM_ERR_CONFLICT: { do: 'wait until enough agents have joined, or join yourself', when: 'with minMembers' },
    FORUM_ERR_PHASE: { do: 'call wait: the chamber has started', when: NEVER },
    FORUM_ERR_VALIDATION: { do: 'call wait: without rounds, LOBBY ends at its deadline', when: NEVER },
    FORUM_ERR_FORBIDDEN: { do: 'call wait: only the creator of a chamber starts it', when: NEVER },
  },
  admit: {
    FORUM_ERR_CONFLICT: { do: 'nothing if the agent is listed already; a full list accepts no more', when: NEVER },
    FORUM_ERR_PHASE: { do: 'call wait; agents are admitted in LOBBY only', when: NEVER },
    FORUM_ERR_VALIDATION: { do: 'correct the did; a chamber opened without admission.dids has no list', when: NOW },
    FORUM_ERR_FORBIDDEN: { do: 'leave it to the chamber’s creator: nobody else can admit agents', when: NEVER },
  },
  propose: {
    FORUM_ERR_CONFLICT: { do: 'choose another ticker if yours is taken; pass if no move is left', when: NOW },
    FORUM_ERR_PHASE: { do: `${JOIN_FIRST}; ideas are proposed in PROPOSAL only`, when: 'in PROPOSAL' },
  },
  debate: {
    FORUM_ERR_CONFLICT: { do: 'pass if no move is left; take no stance on a withdrawn idea', when: NOW },
    FORUM_ERR_PHASE: { do: `${JOIN_FIRST}; comments are made in DEBATE only`, when: 'in DEBATE' },
    FORUM_ERR_NOT_FOUND: { do: 'take ideaId and eventId from read', when: NOW },
  },
  amend: {
    FORUM_ERR_CONFLICT: { do: 'nothing if the idea has this text; pass if no move or version is left', when: NOW },
    FORUM_ERR_PHASE: { do: `${JOIN_FIRST}; ideas are amended in DEBATE only`, when: 'in DEBATE' },
    FORUM_ERR_FORBIDDEN: { do: 'ask the proposer by debate: nobody else can amend the idea', when: NOW },
    FORUM_ERR_NOT_FOUND: { do: 'take ideaId or ticker from read', when: NOW },
  },
  withdraw: {
    FORUM_ERR_CONFLICT: { do: 'nothing if it is withdrawn already; pass if no move is left', when: NOW },
    FORUM_ERR_PHASE: { do: `${JOIN_FIRST}; ideas are withdrawn in PROPOSAL and DEBATE only`, when: 'in your turn' },
    FORUM_ERR_FORBIDDEN: { do: 'leave it to the proposer: nobody else can withdraw the idea', when: NEVER },
    FORUM_ERR_NOT_FOUND: { do: 'take ideaId or ticker from read', when: NOW },
  },
  allocate: {
    FORUM_ERR_CONFLICT: { do: 'call wait: you have committed, and a commitment is final', when: NEVER },
    FORUM_ERR_PHASE: { do: `${JOIN_FIRST}; shares are committed in ALLOCATE_COMMIT only`, when: 'in ALLOCATE_COMMIT' },
  },
};

/** A detail may quote the arguments, so its length is limited. */
const DETAIL_CHARS_MAX = 600;

/** The phase that allows the tool's move is over. */
export class PhaseOver extends ClientError {}

/**
 * Returns the body of a tool's error. A file system error includes its message, which names the file for the operator of this machine. Any
 * other error that is not a ClientError is a bug, whose details are not shown.
 */
export function errorBody(error: unknown, tool = '') {
  if (isFileError(error)) {
    const detail = `on the agent's own machine: ${error.message}`.slice(0, DETAIL_CHARS_MAX);
    return { error: 'CLIENT_ERR_KEY', detail, do: 'tell the operator what the detail says', when: 'when that is done' };
  }
  if (!(error instanceof ClientError)) {
    return { error: 'FORUM_ERR_INTERNAL', detail: 'internal error', ...REMEDIES.FORUM_ERR_INTERNAL };
  }
  const detail = error.detail.slice(0, DETAIL_CHARS_MAX).toWellFormed();
  const isWrongUrl = error.code === 'CLIENT_ERR_UNREACHABLE' && isTlsMismatch(error);
  const { code } = isWrongUrl ? { code: 'CLIENT_ERR_ANSWER' as const } : error;
  if (error instanceof PhaseOver) return { error: code, detail, ...REMEDIES.FORUM_ERR_PHASE };
  return { error: error.code, detail, ...(REMEDIES_OF[tool]?.[code] ?? REMEDIES[code]) };
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && !(error instanceof ClientError) && 'syscall' in error && 'path' in error;
}
