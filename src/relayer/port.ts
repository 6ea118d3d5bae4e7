// The port of the relayer: all that it sees of the forum and of its surroundings.
import type { ChamberState } from '../../projections/chamber.ts';
import type { ServiceFact } from '../vocabulary/events.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';

export interface RelayerForum {
  now(): Millis;
  /** Chambers past their reveal deadline that the relayer has work for, oldest deadline first. */
  unsettledChambers(limit: number): Promise<readonly number[]>;
  /** Settled chambers, latest reveal deadline first: their transactions are watched for reorganisations. */
  settledChambers(limit: number): Promise<readonly number[]>;
  /** The folded chamber and the Merkle root over all its moves. */
  chamber(chamberId: number): Promise<ClosedChamber | undefined>;
  /** Appends a service event; durable when the promise resolves, whatever with, else it throws. */
  record(chamberId: number, fact: ServiceFact): Promise<unknown>;
}

export interface ClosedChamber {
  readonly state: ChamberState;
  readonly root: Hex;
}

/** The part of a pino logger that the relayer needs. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface RelayerConfig {
  readonly rpcUrl: string;
  /** Without it the chain of the log's transactions counts, and in a log without any the one that the RPC reports. */
  readonly chainId?: number;
  readonly registryAddress: Hex;
  readonly factoryAddress: Hex;
  readonly privateKey: Hex;
  /** Blocks, the transaction's own included, before an outcome is recorded; at least 1. */
  readonly confirmations: number;
  readonly feeBumpSeconds: number;
}
