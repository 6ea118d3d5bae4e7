// Calls of the contracts as text, by which the call of a transaction is compared with the one that is due. Without viem.
import type { Idea } from '../../../projections/chamber.ts';
import type { Hex } from '../../vocabulary/values.ts';

/** The commitment that is due, as readCall returns it. */
export function commitCall(chamberId: number, root: Hex | null): string {
  return toText('commitChamber', [chamberId, root]);
}

/** The deployment that is due, in every form that counts: a quorum deployment has no ideaId, but its ticker is unique in its chamber. */
export function deployCalls(chamberId: number, { ideaId, name, ticker, description, creatorWallet }: Idea) {
  const idea = { name, ticker, description, creator: creatorWallet };
  const members = [
    { chamberId, ideaId, ...idea },
    { chamberId, ...idea },
  ];
  return members.map((member) => toText('deployIdea', [member]));
}

/** viem decodes ids as bigints, and addresses with a checksum. */
export function toText(functionName: string, args: readonly unknown[] | undefined): string {
  const text = JSON.stringify(args, (name, value: unknown) => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    return name === 'creator' ? String(value).toLowerCase() : value;
  });
  return `${functionName}(${text})`;
}
