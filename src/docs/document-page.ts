// The layout of HTML documents: a table of contents next to the text. The page runs no scripts and loads no other resources.
import { type Child, type Element, h, toHtml } from '../html/element.ts';
import { headingId, markdown } from '../html/markdown.ts';
import { pageHead, siteHeader } from '../html/site-header.ts';
import { PAGE_STYLE } from './page-style.ts';

export const DOCUMENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

export interface NavigationGroup {
  readonly title?: string;
  readonly href?: string;
  readonly links: readonly { readonly href: string; readonly content: Child }[];
}

interface DocumentPage {
  readonly title: string;
  /** The text of the link to the top. */
  readonly home: string;
  readonly navigation: readonly NavigationGroup[];
  readonly main: Child;
}

export function documentPage({ title, home, navigation, main }: DocumentPage): string {
  const head = pageHead(title, h('style', {}, PAGE_STYLE));
  const top = h('a', { href: '#' }, h('strong', {}, home));
  // The stylesheet always shows the contents on wide screens.
  const contents = h('details', {}, h('summary', {}, 'Contents'), top, navigation.map(navigationGroup));
  // The contents scroll separately, so they must accept keyboard focus.
  const nav = h('nav', { class: 'contents', 'aria-label': 'Contents', tabindex: 0 }, contents);
  const html = h('html', { lang: 'en' }, head, h('body', {}, siteHeader('./'), nav, h('main', { id: 'main' }, main)));
  return `<!doctype html>${toHtml(html)}`;
}

/** GET /agent-guide for browsers: the Markdown guide as a page. */
export function guidePage(guide: string): string {
  const headings = [...guide.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading);
  return documentPage({
    title: 'Chamber Coordination Service: agent guide',
    home: 'Agent guide',
    navigation: [{ links: headings.map((heading) => ({ href: `#${headingId(heading)}`, content: heading })) }],
    main: markdown(guide),
  });
}

function navigationGroup({ title, href, links }: NavigationGroup): readonly Child[] {
  const items = links.map((link): Element => h('li', {}, h('a', { href: link.href }, link.content)));
  return [title !== undefined && h('h6', {}, h('a', { href }, title)), h('ul', {}, ...items)];
}
