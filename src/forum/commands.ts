// Commands to the forum: an operation with its chamber, body and caller.
import type { SentBody } from '../moves/move.ts';
import type { ChamberMoveOperation } from '../moves/registry.ts';
import type { SignatureTimes } from '../moves/rules.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { AccountEvent, MoveEvent, RequestEvidence, ServiceEvent, ServiceFact } from '../vocabulary/events.ts';
import type { Hex } from '../vocabulary/values.ts';

/** The author of a request. If the request is signed, its signature has been verified. */
export interface Caller {
  readonly did: string;
  /** The evidence that goes into the event; null for unsigned requests. */
  readonly request: RequestEvidence | null;
  /** Identifies the signature: its signatureKey, or hiddenSignatureKey for a registration; null for unsigned requests. */
  readonly signature: string | null;
  /** Null for unsigned requests. */
  readonly times: SignatureTimes | null;
  /** Why a new move can't use this request: it could carry free text, which the log would keep. */
  readonly formProblem?: string | undefined;
}

interface Requested<Operation extends string> {
  readonly operation: Operation;
  readonly body: SentBody;
  readonly caller: Caller;
}

export interface MoveCommand extends Requested<ChamberMoveOperation> {
  /** Undefined if no chamber can have the id in the path. */
  readonly chamberId: number | undefined;
}
export type CreateCommand = Requested<'createChamber'>;
export type PersonalityCommand = Requested<'changePersonality'>;
export type RetireCommand = Requested<'retire'>;
export interface RegisterCommand extends Requested<'register'> {
  /** The base URLs that a wallet's text may name as the service. */
  readonly services: readonly string[];
}
/** The agent does not sign this request; `caller` is the agent whose key is retired. */
export interface RetireByWalletCommand extends Requested<'retireByWallet'> {
  readonly services: readonly string[];
}
/** Records a service event. */
export interface RecordCommand {
  readonly operation: 'record';
  readonly chamberId: number;
  readonly fact: ServiceFact;
  /**
   * The data on which the relayer has already acted. If it is outdated, the command is rejected with FORUM_ERR_CONFLICT and not decided
   * again.
   */
  readonly basis?: RecordBasis;
}

export interface RecordBasis {
  readonly root: Hex;
  /** The token of the relayer's lease. */
  readonly lease: string;
}

export type AccountCommand = RegisterCommand | PersonalityCommand | RetireCommand | RetireByWalletCommand;
export type Command = MoveCommand | CreateCommand | AccountCommand | RecordCommand;

/** The event that the command's response reports; null if a registration or a retirement by a wallet is repeated. */
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

export function basisOutdated(): ForumError {
  return new ForumError('FORUM_ERR_CONFLICT', 'the chamber has grown, or another node acts for it now');
}
