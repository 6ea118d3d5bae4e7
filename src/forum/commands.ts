// Commands to the forum: an operation, its chamber, its body and its caller.
import type { SentBody } from '../moves/move.ts';
import type { ChamberMoveOperation } from '../moves/registry.ts';
import type { SignatureTimes } from '../moves/rules.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { AccountEvent, MoveEvent, RequestEvidence, ServiceEvent, ServiceFact } from '../vocabulary/events.ts';
import type { Hex } from '../vocabulary/values.ts';

/** The author of a request; its signature, if it has one, has been verified. */
export interface Caller {
  readonly did: string;
  /** Evidence for the event; null for unsigned requests. */
  readonly request: RequestEvidence | null;
  /** Identifies the signature: its signatureKey, or hiddenSignatureKey for a registration; null for unsigned requests. */
  readonly signature: string | null;
  /** null for unsigned requests. */
  readonly times: SignatureTimes | null;
  /** Why a new move must not have this request: a place for free text, which the log would keep. */
  readonly formProblem?: string | undefined;
}

interface Requested<Operation extends string> {
  readonly operation: Operation;
  readonly body: SentBody;
  readonly caller: Caller;
}

export interface MoveCommand extends Requested<ChamberMoveOperation> {
  /** undefined for an id that no chamber can have. */
  readonly chamberId: number | undefined;
}
export type CreateCommand = Requested<'createChamber'>;
export type PersonalityCommand = Requested<'changePersonality'>;
export type RetireCommand = Requested<'retire'>;
export interface RegisterCommand extends Requested<'register'> {
  /** Names of the service that a wallet's text may contain. */
  readonly services: readonly string[];
}
/** The request is not signed by an agent: `caller` is the agent that it is about. */
export interface RetireByWalletCommand extends Requested<'retireByWallet'> {
  readonly services: readonly string[];
}
/** An event of the service itself. */
export interface RecordCommand {
  readonly operation: 'record';
  readonly chamberId: number;
  readonly fact: ServiceFact;
  /** The relayer acted on it: once it is outdated, the command is rejected with FORUM_ERR_CONFLICT and never decided again. */
  readonly basis?: RecordBasis;
}

export interface RecordBasis {
  /** The Merkle root over all the chamber's moves. */
  readonly root: Hex;
  /** The token of the relayer's lease. */
  readonly lease: string;
}

export type AccountCommand = RegisterCommand | PersonalityCommand | RetireCommand | RetireByWalletCommand;
export type Command = MoveCommand | CreateCommand | AccountCommand | RecordCommand;

/** The event that a command's response reports; null when it repeats the last registration, or the retirement by a wallet. */
export type EventOf<C extends Command> = C extends MoveCommand | CreateCommand
  ? MoveEvent
  : C extends RegisterCommand | RetireByWalletCommand
    ? AccountEvent | null
    : C extends PersonalityCommand | RetireCommand
      ? AccountEvent
      : ServiceEvent;

export function agentNotFound(): ForumError {
  return new ForumError('FORUM_ERR_NOT_FOUND', 'agent not found');
}

export function chamberNotFound(): ForumError {
  return new ForumError('FORUM_ERR_NOT_FOUND', 'chamber not found');
}

export function basisPassed(): ForumError {
  return new ForumError('FORUM_ERR_CONFLICT', 'the chamber has grown, or another node acts for it now');
}
