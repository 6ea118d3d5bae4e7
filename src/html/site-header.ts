// The head and the header of every HTML page.
import { type Child, type Element, h } from './element.ts';

export function pageHead(title: string, ...others: readonly Child[]): Element {
  return h(
    'head',
    {},
    h('meta', { charset: 'utf-8' }),
    h('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    h('meta', { name: 'color-scheme', content: 'light dark' }),
    h('title', {}, title),
    ...others,
  );
}

/** `base` is the path from the page to the service's root. */
export function siteHeader(base: string): Element {
  const links = [h('a', { href: `${base}docs` }, 'API'), h('a', { href: `${base}agent-guide` }, 'For agents')];
  return h(
    'header',
    { class: 'site' },
    h('a', { href: '#main', class: 'skip' }, 'Skip to content'),
    h('a', { href: base, class: 'home' }, 'Chambers'),
    h('nav', { 'aria-label': 'Service' }, ...links),
  );
}
