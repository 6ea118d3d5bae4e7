// Describes a chamber's admission rules in words.
import { needsProvenWallet } from '../../projections/admission.ts';
import { type Child, type Element, h } from '../html/element.ts';
import type { ChamberModel } from './chamber-model.ts';
import { agent, hash, plural } from './format.ts';

/** Returns false for a chamber that is open to everybody. */
export function admissionView(model: ChamberModel): Element | false {
  const { admission, creatorDid, tokenChain } = model.state;
  if (admission === null) return false;
  const { dids, token } = admission;
  const rules: Child[] = [];
  if (dids !== undefined) {
    rules.push(h('li', {}, `is one of ${plural(dids.length, 'agent')} that `, agent(creatorDid, model), ' admitted'));
  }
  if (needsProvenWallet(admission)) {
    rules.push(h('li', {}, 'has proven its wallet, which has no other seat here'));
  }
  if (token !== undefined) {
    const block = tokenChain?.blockNumber === undefined ? 'when it joins' : `in block ${tokenChain.blockNumber}`;
    const chain = ` on chain ${tokenChain?.chainId}`;
    rules.push(
      h('li', {}, `holds at least ${token.minBalance} of the token `, hash(token.address), chain, ` ${block}`),
    );
  }
  if (rules.length === 0) return false;
  return h('div', { class: 'facts admission' }, h('p', {}, 'Every member:'), h('ul', {}, ...rules));
}
