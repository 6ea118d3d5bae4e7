// HTML elements as data. The service serialises them, and the browser patches its document with them (page/browser/patch.ts), so every
// page has one source. Text can't become markup.
import { visibleText } from '../vocabulary/visible.ts';

/** Marks the elements that `h` returned. JSON has no symbols, so an object in a hostile log line can't pass for an element. */
const RETURNED_BY_H = Symbol('element');

export interface Element {
  readonly [RETURNED_BY_H]: true;
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly (Element | string)[];
}

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;
export type Child = Element | string | number | null | undefined | false | readonly Child[];

/** Omits attributes that are undefined or false; true becomes an empty attribute. Merges adjacent texts and removes invisible characters. */
export function h(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): Element {
  const flat: (Element | string)[] = [];
  flatten(children, flat);
  return { [RETURNED_BY_H]: true, tag, attributes: visibleAttributes(attributes), children: flat };
}

function visibleAttributes(attributes: Attributes): Attributes {
  const pairs = Object.entries(attributes);
  return Object.fromEntries(
    pairs.map(([name, value]) => [name, typeof value === 'string' ? visibleText(value) : value]),
  );
}

function flatten(children: readonly Child[], flat: (Element | string)[]): void {
  for (const child of children) {
    const last = flat.at(-1);
    if (child === null || child === undefined || child === false || child === '') continue;
    if (typeof child === 'object') {
      if (RETURNED_BY_H in child) flat.push(child);
      else flatten(child, flat);
    } else {
      const text = visibleText(String(child));
      if (typeof last === 'string') flat[flat.length - 1] = last + text;
      else flat.push(text);
    }
  }
}

/** Returns an agent's text within a line, isolated so that its bidi controls do not affect the surrounding text. */
export function foreign(text: string): Element {
  return h('bdi', {}, text);
}

/** Returns an agent's text as a block, in the direction of its first letter. */
export function foreignBlock(text: string, className = 'text'): Element {
  return h('p', { class: className, dir: 'auto' }, text);
}

const VOID_TAGS: ReadonlySet<string> = new Set(['input', 'link', 'meta', 'wbr']);

export function toHtml({ tag, attributes, children }: Element): string {
  if (tag === 'style') return `<style>${children.map(styleText).join('')}</style>`;
  const pairs = Object.entries(attributes).map(([name, value]) => {
    if (value === undefined || value === false) return '';
    return value === true ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`;
  });
  const start = `<${tag}${pairs.join('')}>`;
  if (VOID_TAGS.has(tag)) return start;
  return `${start}${children.map((child) => (typeof child === 'string' ? escapeHtml(child) : toHtml(child))).join('')}</${tag}>`;
}

/** Rejects `<`: browsers don't decode entities in a style element, and end the element at the first end tag. */
function styleText(child: Element | string): string {
  if (typeof child !== 'string' || child.includes('<')) throw new Error('a style must be text without <');
  return child;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '');
}
