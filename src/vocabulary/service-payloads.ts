// The payloads of service events, which the service writes after the reveal deadline, outside the Merkle tree.
import type { Hex } from './values.ts';

export interface RecordedTransaction {
  readonly chainId: number;
  readonly nonce: number;
  readonly txHash: Hex;
  /** Absent only in a stub, because the calldata contained a withheld text. */
  readonly rawTransaction?: Hex;
}

export interface RelayTransaction extends RecordedTransaction {
  readonly rawTransaction: Hex;
}

export interface ServicePayloads {
  'relay.commit_submitted': RelayTransaction;
  'chamber.committed': {
    /** The root of events 1 to eventCount. */
    readonly merkleRoot: Hex;
    readonly eventCount: number;
    /** The transaction of commitChamber. */
    readonly txHash: Hex;
    readonly blockNumber: number;
    /** The block's time. */
    readonly committedAt: string;
  };
  'relay.deploy_submitted': { readonly ideaId: string } & RecordedTransaction;
  'idea.deployed': {
    readonly ideaId: string;
    readonly tokenAddress: string;
    /** The transaction of deployIdea. */
    readonly txHash: Hex;
    readonly graduatedAt: string;
  };
  /** txHash is null if no transaction was mined. */
  'idea.deploy_failed': { readonly ideaId: string; readonly txHash: Hex | null; readonly reason: string };
}
