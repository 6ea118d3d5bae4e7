// Compares what the log says of the chain with what the chain says: the root, the commitment, the tokens.
import type { Hex } from 'viem';
import type { ServiceEvent } from '../vocabulary/events.ts';
import type { ChamberAudit, Claim } from './audit.ts';
import { type AuditedChain, contractEvents, type Receipt } from './chain.ts';

type Committed = Extract<ServiceEvent, { type: 'chamber.committed' }>;
type Deployed = Extract<ServiceEvent, { type: 'idea.deployed' }>;

export async function compareChain(audit: ChamberAudit, chain: AuditedChain, chamberId: number): Promise<void> {
  await compareRoot(audit, chain, chamberId);
  for (const claim of audit.claims) {
    const receipt = await chain.receipt(claim.event.payload.txHash);
    const problem = problemOf(claim, receipt, chain.registry);
    const sentence = `event ${claim.eventId} (${claim.event.type}): ${problem}`;
    audit.ledger.judge('receipts', problem === undefined, { eventIds: [claim.eventId], sentence });
  }
}

async function compareRoot(
  { ledger, claims, root }: ChamberAudit,
  chain: AuditedChain,
  chamberId: number,
): Promise<void> {
  const onChain = await chain.rootOf(chamberId);
  const eventIds = claims.filter(({ event }) => event.type === 'chamber.committed').map(({ eventId }) => eventId);
  if (onChain === null && eventIds.length === 0) {
    ledger.notEvaluated('contract', 'the registry holds no root of this chamber yet');
    return;
  }
  const sentence = `the registry holds ${onChain ?? 'no root'} for chamber ${chamberId}, the moves have ${root}`;
  ledger.judge('contract', onChain === root, { eventIds, sentence });
}

function problemOf(claim: Claim, receipt: Receipt | undefined, registry: Hex): string | undefined {
  const { txHash } = claim.event.payload;
  if (receipt === undefined) return `the chain does not know transaction ${txHash}`;
  if (!receipt.isSuccess) return `transaction ${txHash} was reverted`;
  return claim.event.type === 'chamber.committed'
    ? problemOfCommitment(claim.event, receipt, registry)
    : problemOfToken(claim.event, receipt);
}

function problemOfCommitment({ chamberId, payload }: Committed, receipt: Receipt, registry: Hex): string | undefined {
  const isThere = contractEvents(receipt).some(
    ({ eventName, address, args }) =>
      eventName === 'ChamberCommitted' &&
      address.toLowerCase() === registry.toLowerCase() &&
      args.chamberId === BigInt(chamberId) &&
      args.root === payload.merkleRoot,
  );
  if (!isThere) return `transaction ${payload.txHash} did not commit this root`;
  if (receipt.blockNumber !== payload.blockNumber) return `its block is ${receipt.blockNumber}`;
  return receipt.at === payload.committedAt ? undefined : `its block is of ${receipt.at}`;
}

function problemOfToken({ chamberId, payload }: Deployed, receipt: Receipt): string | undefined {
  const isThere = contractEvents(receipt).some(
    ({ eventName, args }) =>
      eventName === 'IdeaDeployed' &&
      args.chamberId === BigInt(chamberId) &&
      args.ideaToken.toLowerCase() === payload.tokenAddress.toLowerCase(),
  );
  if (!isThere) return `transaction ${payload.txHash} did not deploy ${payload.tokenAddress}`;
  return receipt.at === payload.graduatedAt ? undefined : `its block is of ${receipt.at}`;
}
