// Calls of the contracts as text, by which the call of a transaction is compared with the one that is due. Without viem.
import type { Idea } from '../../../projections/ideas.ts';
import type { Hex } from '../../vocabulary/values.ts';

/** The commitment that is due, as readCall returns it. */
export function commitCall(chamberId: number, root: Hex | null): string {
  return toText('commitChamber', [chamberId, root]);
}

/** The kinds of contracts: each takes deployments in a form of its own. */
export const CONTRACT_FORMS = ['reference', 'quorum'] as const;
export type ContractForm = (typeof CONTRACT_FORMS)[number];

/** The deployment that is due in a form: that of a quorum deployment has no ideaId, but its ticker is unique in its chamber. */
function deployCall(form: ContractForm, chamberId: number, idea: Idea): string {
  const { ideaId, name, ticker, description, creatorWallet: creator } = idea;
  const known = { name, ticker, description, creator };
  return toText('deployIdea', [form === 'reference' ? { chamberId, ideaId, ...known } : { chamberId, ...known }]);
}

/** The deployment in every form: lines do not show which contracts they are of. */
export function deployCalls(chamberId: number, idea: Idea): readonly string[] {
  return CONTRACT_FORMS.map((form) => deployCall(form, chamberId, idea));
}

/** The form in which a call deploys the idea; undefined for any other call. */
export function formOf(call: string, chamberId: number, idea: Idea): ContractForm | undefined {
  return CONTRACT_FORMS.find((form) => deployCall(form, chamberId, idea) === call);
}

/** viem decodes ids as bigints, and addresses with a checksum. */
export function toText(functionName: string, args: readonly unknown[] | undefined): string {
  const text = JSON.stringify(args, (name, value: unknown) => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    return name === 'creator' ? String(value).toLowerCase() : value;
  });
  return `${functionName}(${text})`;
}
