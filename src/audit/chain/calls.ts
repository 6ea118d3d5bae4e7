// Formats contract calls as text, to compare a transaction's call with the expected one. Does not need viem.
import type { Idea } from '../../../projections/ideas.ts';
import type { Hex } from '../../vocabulary/values.ts';

/** The expected commitment call, formatted like readCall's. */
export function commitCall(chamberId: number, root: Hex | null): string {
  return toText('commitChamber', [chamberId, root]);
}

/** The two kinds of contracts; each takes deployment calls in its own form. */
export const CONTRACT_FORMS = ['reference', 'quorum'] as const;
export type ContractForm = (typeof CONTRACT_FORMS)[number];

/** A quorum deployment has no ideaId; the ticker, unique in the chamber, identifies the idea. */
function deployCall(form: ContractForm, chamberId: number, idea: Idea): string {
  const { ideaId, name, ticker, description, creatorWallet: creator } = idea;
  const known = { name, ticker, description, creator };
  return toText('deployIdea', [form === 'reference' ? { chamberId, ideaId, ...known } : { chamberId, ...known }]);
}

/** The deployment call in every form, because lines do not show which contracts the service uses. */
export function deployCalls(chamberId: number, idea: Idea): readonly string[] {
  return CONTRACT_FORMS.map((form) => deployCall(form, chamberId, idea));
}

/** Returns the form of a call that deploys the idea, or undefined for other calls. */
export function formOf(call: string, chamberId: number, idea: Idea): ContractForm | undefined {
  return CONTRACT_FORMS.find((form) => deployCall(form, chamberId, idea) === call);
}

/** Normalises viem's decoded values: bigint ids become numbers, and checksummed addresses become lowercase. */
export function toText(functionName: string, args: readonly unknown[] | undefined): string {
  const text = JSON.stringify(args, (name, value: unknown) => {
    if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    return name === 'creator' ? String(value).toLowerCase() : value;
  });
  return `${functionName}(${text})`;
}
