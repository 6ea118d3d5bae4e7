// Converts the subset of Markdown that the service's documents use to elements. Links lead only to http, https and relative URLs.
import { type Child, type Element, h } from './element.ts';

/** Converts headings (with ids from their text), paragraphs, lists, tables and fenced code. */
export function markdown(text: string): readonly Element[] {
  // Every second part is fenced code.
  const parts = text.split(/^```\w*\n([\s\S]*?)\n```$/m);
  return parts.flatMap((part, index) => (index % 2 === 1 ? [preformatted(part)] : blocksOf(part)));
}

function blocksOf(text: string): readonly Element[] {
  return text
    .trim()
    .split(/\n{2,}/)
    .filter((each) => each !== '')
    .map(block);
}

function block(text: string): Element {
  const [, marks, heading] = /^(#+) (.*)$/.exec(text) ?? [];
  if (marks !== undefined && heading !== undefined) {
    return h(`h${marks.length}`, { id: headingId(heading) }, inline(heading));
  }
  const lines = text.split('\n');
  if (text.startsWith('- ')) return h('ul', {}, ...lines.map((line) => h('li', {}, inline(line.slice(2)))));
  if (text.startsWith('1. '))
    return h('ol', {}, ...lines.map((line) => h('li', {}, inline(line.replace(/^\d+\. /, '')))));
  if (text.startsWith('| ')) return table(lines);
  return h('p', {}, inline(text));
}

/** The second line separates the head from the rows. */
function table([head = '', , ...rows]: readonly string[]): Element {
  const row = (line: string, tag: 'td' | 'th') => {
    const cells = line.slice('| '.length, -' |'.length).split(' | ');
    return h('tr', {}, ...cells.map((cell) => h(tag, {}, inline(cell))));
  };
  return h('table', {}, h('thead', {}, row(head, 'th')), h('tbody', {}, ...rows.map((line) => row(line, 'td'))));
}

export function headingId(heading: string): string {
  return heading.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

/** Makes the text focusable, because text that scrolls sideways must be reachable with the keyboard. */
export function preformatted(...children: readonly Child[]): Element {
  return h('pre', { tabindex: 0 }, ...children);
}

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((https?:\/\/[^)]+|[\w./#-]+)\)|(https?:\/\/[^\s)]*[\w/])/g;

/** Converts code spans, strong text, links and URLs within a line. */
export function inline(text: string): readonly Child[] {
  return marked(text, INLINE, ([whole, code, strong, label, href, address]) => {
    if (code !== undefined) return h('code', {}, code);
    if (strong !== undefined) return h('strong', {}, strong);
    return h('a', { href: href ?? address }, label ?? whole);
  });
}

/** Returns the text with each match of the pattern replaced by the result of `mark`. */
export function marked(text: string, pattern: RegExp, mark: (match: RegExpExecArray) => Child): readonly Child[] {
  const children: Child[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    children.push(text.slice(end, match.index), mark(match));
    end = match.index + match[0].length;
  }
  return [...children, text.slice(end)];
}

/** Lets a path or name break only after its separators on a narrow page. */
export function breakable(text: string): readonly Child[] {
  return marked(text, /[/_.](?=[\w{[])/g, ([separator]) => [separator, h('wbr')]);
}
