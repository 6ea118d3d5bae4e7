// Parses the parameters in the page's URL: an event, an earlier root, a chain, witnesses.
import type { NamedChain, NamedRoot } from '../live-view.ts';

/** `#e17` */
export function linkedEvent(): number | undefined {
  const [, digits] = /^#e(\d{1,9})$/.exec(location.hash) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** `?size=16&root=0x…` */
export function namedRoot(): NamedRoot | undefined {
  const query = new URLSearchParams(location.search);
  const [size, root] = [Number(query.get('size')), query.get('root')];
  return Number.isSafeInteger(size) && size > 0 && root !== null ? { size, root } : undefined;
}

/** `?witnesses=KEY+KEY` */
export function namedWitnesses(): readonly string[] {
  return (new URLSearchParams(location.search).get('witnesses') ?? '').split(' ').filter((key) => key !== '');
}

/** `?rpc=URL&registry=0x…` */
export function namedChain(): NamedChain | undefined {
  const query = new URLSearchParams(location.search);
  const [rpc, registry] = [query.get('rpc'), query.get('registry')];
  return rpc !== null && registry !== null && URL.canParse(rpc) ? { rpc, registry } : undefined;
}
