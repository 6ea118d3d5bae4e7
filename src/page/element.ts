// Elements as data: the service writes them as HTML, the browser brings its document in line with them, so that a page has
// one source. Text is always text: there is no way to pass markup.

export interface Element {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly (Element | string)[];
}

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;
export type Child = Element | string | number | null | undefined | false | readonly Child[];

/** An attribute that is undefined or false is absent, one that is true is empty. Neighbouring texts become one. */
export function h(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): Element {
  const flat: (Element | string)[] = [];
  flatten(children, flat);
  return { tag, attributes, children: flat };
}

function flatten(children: readonly Child[], flat: (Element | string)[]): void {
  for (const child of children) {
    const last = flat.at(-1);
    if (child === null || child === undefined || child === false || child === '') continue;
    if (typeof child === 'object') {
      if ('tag' in child) flat.push(child);
      else flatten(child, flat);
    } else if (typeof last === 'string') flat[flat.length - 1] = last + child;
    else flat.push(String(child));
  }
}

/** Text of an agent within a line: bidi controls in it have no effect around it. */
export function foreign(text: string): Element {
  return h('bdi', {}, text);
}

/** Text of an agent as a block, in the direction of its own first letter. */
export function foreignBlock(text: string, className = 'text'): Element {
  return h('p', { class: className, dir: 'auto' }, text);
}

const VOID_TAGS: ReadonlySet<string> = new Set(['input', 'link', 'meta']);

export function toHtml({ tag, attributes, children }: Element): string {
  const pairs = Object.entries(attributes).map(([name, value]) => {
    if (value === undefined || value === false) return '';
    return value === true ? ` ${name}` : ` ${name}="${escapeHtml(String(value))}"`;
  });
  const start = `<${tag}${pairs.join('')}>`;
  if (VOID_TAGS.has(tag)) return start;
  return `${start}${children.map((child) => (typeof child === 'string' ? escapeHtml(child) : toHtml(child))).join('')}</${tag}>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  // A parser would drop the first and take the second for a line feed.
  '\0': '\u{fffd}',
  '\r': '&#13;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"\0\r]/g, (character) => ENTITIES[character] ?? '');
}
