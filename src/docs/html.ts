// HTML as a tagged template that escapes every value, and the subset of Markdown that the service's own descriptions use.

export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Insert = Html | string | number | readonly Html[];

export function html(strings: TemplateStringsArray, ...inserts: readonly Insert[]): Html {
  return new Html(strings.reduce((text, part, index) => text + insert(inserts[index - 1]) + part));
}

function insert(value: Insert | undefined): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return escapeHtml(String(value ?? ''));
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}

/** A path or a name that a narrow page may break after its separators, and nowhere else. */
export function breakable(text: string): Html {
  return new Html(escapeHtml(text).replace(/[/_.](?=[\w{[])/g, '$&<wbr>'));
}

/** Headings with ids made from their text, paragraphs and lists. Not for untrusted text. */
export function markdown(text: string): Html {
  const blocks = text.split(/\n{2,}/).map(block);
  return new Html(blocks.join('\n'));
}

function block(text: string): string {
  const [, marks, heading] = /^(#+) (.*)$/.exec(text) ?? [];
  if (marks !== undefined && heading !== undefined) {
    const id = heading.toLowerCase().replace(/[^a-z0-9]+/g, '-');
    return `<h${marks.length} id="${id}">${inline(heading).text}</h${marks.length}>`;
  }
  if (text.startsWith('- ')) {
    const items = text.split('\n').map((line) => `<li>${inline(line.slice(2)).text}</li>`);
    return `<ul>${items.join('')}</ul>`;
  }
  return `<p>${inline(text).text}</p>`;
}

/** One line: code spans and links. */
export function inline(text: string): Html {
  const parts = escapeHtml(text).split('`');
  const marked = parts.map((part, index) =>
    index % 2 === 1 ? `<code>${part}</code>` : part.replace(/\[([^\]]+)\]\(([^)]+)\)/g, '<a href="$2">$1</a>'),
  );
  return new Html(marked.join(''));
}
