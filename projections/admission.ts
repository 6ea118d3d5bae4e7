// Who may join a chamber, by its rules and what is known without asking a chain. A rule that is not given does not restrict.
import type { AdmissionRule } from '../src/vocabulary/values.ts';
import type { ChamberState } from './chamber.ts';

export interface Candidate {
  readonly did: string;
}

/** A rule that the candidate does not meet, and what would satisfy it, in a sentence without its period. */
export interface UnmetRule {
  readonly rule: AdmissionRule;
  readonly remedy: string;
}

export function unmetRules(
  { chamberId, creatorDid, admission }: Pick<ChamberState, 'chamberId' | 'creatorDid' | 'admission'>,
  { did }: Candidate,
): readonly UnmetRule[] {
  const unmet: UnmetRule[] = [];
  if (admission?.dids?.includes(did) === false) {
    const remedy = `${did} is not on the list of chamber ${chamberId}: its creator ${creatorDid} may add it in LOBBY by POST /chambers/${chamberId}/admit`;
    unmet.push({ rule: 'dids', remedy });
  }
  return unmet;
}

export function toSentence(unmet: readonly UnmetRule[]): string {
  return unmet.map(({ rule, remedy }) => `${rule}: ${remedy}`).join('; ');
}
