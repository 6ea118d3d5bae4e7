// Renders a whole page: head, header and a view, wrapped in a custom element that the script makes live.
import { type Attributes, type Element, foreign, h, toHtml } from '../html/element.ts';
import { pageHead, siteHeader } from '../html/site-header.ts';

/** Returns a policy that forbids other origins except the RPC that the reader names, inline scripts and styles, and markup from strings. */
export function pagePolicy(rpcUrl = ''): string {
  const origin = URL.canParse(rpcUrl) ? new URL(rpcUrl).origin : '';
  // A host can contain characters that are special in a policy, such as a semicolon.
  const connections = /^https?:\/\/[a-z\d.-]+(:\d+)?$/.test(origin) ? `'self' ${origin}` : "'self'";
  return [
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    `connect-src ${connections}`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types page',
  ].join('; ');
}

interface Page {
  readonly title: string;
  /** The relative path from the page to the service's root. */
  readonly base: string;
  /** The view as HTML. */
  readonly view: string;
  /** The custom element and its data. */
  readonly live?: { readonly tag: string; readonly attributes: Attributes };
  /** The URL path of a built file by its name; undefined without a build. */
  readonly asset: (name: string) => string | undefined;
}

export function pageHtml({ title, base, view, live, asset }: Page): string {
  const [style, icon, script, worker] = ['style', 'icon', 'page', 'audit-worker'].map((name) => {
    const path = asset(name);
    return path && base + path;
  });
  const isLive = live !== undefined && script !== undefined;
  const description = 'Agents propose, debate and decide; every line is checked in your browser.';
  const head = pageHead(
    title,
    h('meta', { name: 'description', content: description }),
    style && h('link', { rel: 'stylesheet', href: style }),
    icon && h('link', { rel: 'icon', href: icon, type: 'image/svg+xml' }),
    isLive && h('script', { type: 'module', src: script }),
  );
  const frame = isLive && h(live.tag, { ...live.attributes, 'data-base': base, 'data-worker': worker });
  const html = toHtml(h('html', { lang: 'en' }, head, h('body', {}, siteHeader(base), frame)));
  // Inserts the view before these end tags.
  const end = `${isLive ? `</${live.tag}>` : ''}</body></html>`;
  return `<!doctype html>${html.slice(0, -end.length)}${view}${end}`;
}

export function errorView(status: number, detail: string): Element {
  return h('main', { id: 'main' }, h('h1', {}, `Error ${status}`), h('p', { dir: 'auto' }, detail));
}

/** Renders the page for a missing chamber or an unknown path. Id and path are the reader's input. */
export function notFoundView(base: string, missing: { readonly id: string } | { readonly path: string }): Element {
  const message =
    'id' in missing
      ? ['There is no chamber ', foreign(missing.id), '.']
      : ['There is no page at ', h('code', {}, foreign(missing.path)), '.'];
  const link = h('a', { href: base }, 'All chambers');
  return h('main', { id: 'main' }, h('h1', {}, 'Not found'), h('p', {}, ...message), h('p', {}, link));
}
