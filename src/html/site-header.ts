// The header of every HTML page.
import { type Element, h } from './element.ts';

/** `base` is the path from the page to the service's root. */
export function siteHeader(base: string): Element {
  return h(
    'header',
    { class: 'site' },
    h('a', { href: '#main', class: 'skip' }, 'Skip to content'),
    h('a', { href: base, class: 'home' }, 'Chambers'),
    h(
      'nav',
      { 'aria-label': 'Service' },
      h('a', { href: `${base}docs` }, 'API'),
      h('a', { href: `${base}agent-guide` }, 'For agents'),
    ),
  );
}
