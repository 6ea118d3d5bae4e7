// What enters the queue: each submission names what must be loaded first and then decides, without suspending, on a draft.
import { decideChangePersonality } from '../decide/change-personality.ts';
import { decideCreateChamber } from '../decide/create-chamber.ts';
import { type ChamberCommand, decideMove } from '../decide/decide-move.ts';
import { requireFresh, type SignatureAges, type SignatureTimes } from '../decide/freshness.ts';
import { decideRegister, registeredDid } from '../decide/register.ts';
import type { ChamberLimits } from '../decide/situation.ts';
import type { StreamId } from '../log/log.ts';
import { type MoveOperation, parseBody } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { AccountEvent, ForumEvent, MoveEvent, ServiceEvent, ServiceFact } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Author, Draft } from './draft.ts';
import type { Account } from './streams.ts';

/** The author of a request whose signature, where it has one, was verified. */
export interface Caller extends Author {
  /** null for requests that development mode admits unsigned. */
  readonly times: SignatureTimes | null;
}

export interface Rules {
  readonly limits: ChamberLimits;
  readonly ages: SignatureAges;
}

export interface Submission<Event extends ForumEvent | null = ForumEvent | null> {
  readonly streams: readonly StreamId[];
  readonly signature: string | null;
  /** Appends one event to the draft, or none where nothing changes; throws ForumError. */
  readonly decide: (draft: Draft, wallClock: Millis) => Event;
}

export interface MoveRequest {
  readonly operation: Exclude<MoveOperation, 'createChamber'>;
  /** undefined for an id that no chamber can have. */
  readonly chamberId: number | undefined;
  readonly body: unknown;
  readonly caller: Caller;
}

export function submitMove({ operation, chamberId, body, caller }: MoveRequest, rules: Rules): Submission<MoveEvent> {
  return {
    streams: chamberId === undefined ? [caller.did] : [chamberId, caller.did],
    signature: caller.signature,
    decide: (draft, wallClock) => {
      checkAge(caller, wallClock, rules);
      const chamber = chamberId === undefined ? undefined : draft.chamber(chamberId);
      if (chamber === undefined) throw noChamber();
      const command = { type: operation, body: parseBody(operation, body) } as ChamberCommand;
      const { did } = caller;
      const wallet = registered(draft, did).state.walletAddress;
      const fact = decideMove(command, { state: chamber.state, did, wallet, now: draft.now, limits: rules.limits });
      return draft.appendMove(fact, caller, chamberId);
    },
  };
}

export interface CreateRequest {
  readonly body: unknown;
  readonly caller: Caller;
  /** How many chambers of the caller are in the log and not committed. */
  readonly openChambers: number;
}

export function submitCreate({ body, caller, openChambers }: CreateRequest, rules: Rules): Submission<MoveEvent> {
  return {
    streams: [caller.did],
    signature: caller.signature,
    decide: (draft, wallClock) => {
      checkAge(caller, wallClock, rules);
      const command = parseBody('createChamber', body);
      const fact = decideCreateChamber(command, { now: draft.now, openChambers, limits: rules.limits });
      return draft.appendMove(fact, caller);
    },
  };
}

export function submitPersonality(body: unknown, caller: Caller, rules: Rules): Submission<AccountEvent> {
  return {
    streams: [caller.did],
    signature: caller.signature,
    decide: (draft, wallClock) => {
      checkAge(caller, wallClock, rules);
      const command = parseBody('changePersonality', body);
      const { state } = registered(draft, caller.did);
      return draft.appendAccount(decideChangePersonality(command, state), caller);
    },
  };
}

/** The event is null when an unsigned registration repeats the last one. */
export function submitRegister(body: unknown, caller: Caller, rules: Rules): Submission<AccountEvent | null> {
  return {
    streams: [caller.did],
    signature: caller.signature,
    decide: (draft, wallClock) => {
      checkAge(caller, wallClock, rules);
      const command = parseBody('register', body);
      requireOwnKey(registeredDid(command), caller.did);
      const { state = null, operatorEmail } = draft.account(caller.did) ?? {};
      const fact = decideRegister(command, { state, operatorEmail, isSigned: caller.signature !== null });
      return fact === null ? null : draft.appendAccount(fact, caller, command.operatorEmail);
    },
  };
}

function requireOwnKey(registered: string, signer: string): void {
  if (registered === signer) return;
  throw new ForumError('FORUM_ERR_SIGNATURE', `key: the registration of ${registered} is signed by ${signer}`);
}

export function submitService(chamberId: number, fact: ServiceFact): Submission<ServiceEvent> {
  return { streams: [chamberId], signature: null, decide: (draft) => draft.appendService(fact, chamberId) };
}

export function noChamber(): ForumError {
  return new ForumError('FORUM_ERR_NOT_FOUND', 'there is no chamber of that id');
}

function checkAge({ times }: Caller, wallClock: Millis, { ages }: Rules): void {
  if (times !== null) requireFresh(times, wallClock, ages);
}

function registered(draft: Draft, did: string): Account {
  const account = draft.account(did);
  if (account === undefined) throw new Error(`${did} was registered and is not in the log`);
  return account;
}
