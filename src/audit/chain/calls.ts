// The contracts' calls as text, to compare the call of a transaction with the due one. Works without viem.
import type { Idea } from '../../../projections/ideas.ts';
import type { Hex } from '../../vocabulary/values.ts';

/** The due commitment, in the form of readCall. */
export function commitCall(chamberId: number, root: Hex | null): string {
  return toText('commitChamber', [chamberId, root]);
}

/** Each kind of contract expects deployment calls in its own form. */
export const CONTRACT_FORMS = ['reference', 'quorum'] as const;
export type ContractForm = (typeof CONTRACT_FORMS)[number];

/** A quorum deployment has no ideaId, but its ticker is unique in the chamber. */
function deployCall(form: ContractForm, chamberId: number, idea: Idea): string {
  const { ideaId, name, ticker, description, creatorWallet: creator } = idea;
  const known = { name, ticker, description, creator };
  return toText('deployIdea', [form === 'reference' ? { chamberId, ideaId, ...known } : { chamberId, ...known }]);
}

/** The deployment in every form: lines do not show which contracts they use. */
export function deployCalls(chamberId: number, idea: Idea): readonly string[] {
  return CONTRACT_FORMS.map((form) => deployCall(form, chamberId, idea));
}

/** The form in which the call deploys the idea; undefined for other calls. */
export function formOf(call: string, chamberId: number, idea: Idea): ContractForm | undefined {
  return CONTRACT_FORMS.find((form) => deployCall(form, chamberId, idea) === call);
}

/** viem decodes ids to bigints, and addresses with a checksum. */
export function toText(functionName: string, args: readonly unknown[] | undefined): string {
  const text = JSON.stringify(args, (name, value: unknown) => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    return name === 'creator' ? String(value).toLowerCase() : value;
  });
  return `${functionName}(${text})`;
}
