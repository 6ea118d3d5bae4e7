// The commitment to an allocation: what a member commits to before the reveal, bound to chamber and agent.
import { encodeAbiParameters } from 'viem';
import { type Allocation, fromHex, type Hex, toHex } from '../vocabulary/values.ts';
import { keccak256 } from './keccak.ts';

export interface Opening {
  readonly chamberId: number;
  /** The member's DID. */
  readonly did: string;
  /** In the order revealed, which counts. */
  readonly allocations: readonly Allocation[];
  readonly salt: Hex;
}

const PARAMETERS = [
  { name: 'chamberId', type: 'uint256' },
  { name: 'agentDid', type: 'string' },
  {
    name: 'allocations',
    type: 'tuple[]',
    components: [
      { name: 'ideaId', type: 'string' },
      { name: 'bps', type: 'uint256' },
    ],
  },
  { name: 'salt', type: 'bytes' },
] as const;

/** keccak256(abi.encode(uint256 chamberId, string agentDid, (string ideaId, uint256 bps)[] allocations, bytes salt)). */
export function commitmentHash(opening: Opening): Hex {
  return toHex(keccak256(fromHex(encodeOpening(opening))));
}

/** The bytes that are hashed. */
export function encodeOpening({ chamberId, did, allocations, salt }: Opening): Hex {
  const tuples = allocations.map(({ ideaId, bps }) => ({ ideaId, bps: BigInt(bps) }));
  return encodeAbiParameters(PARAMETERS, [BigInt(chamberId), did, tuples, salt]);
}
