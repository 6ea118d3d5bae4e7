// The little Markdown that our own descriptions use: headings, paragraphs, lists, code and links. Not for others' texts.
import { escapeHtml, Html } from './html.ts';

/** Headings become h2 and on, with their words as id. */
export function markdown(text: string): Html {
  return new Html(
    text
      .split(/\n{2,}/)
      .map(block)
      .join('\n'),
  );
}

/** One line: code spans and links. */
export function inline(text: string): Html {
  const parts = escapeHtml(text).split('`');
  return new Html(parts.map((part, index) => (index % 2 === 1 ? `<code>${part}</code>` : links(part))).join(''));
}

function block(text: string): string {
  const [, marks, heading] = /^(#+) (.*)$/.exec(text) ?? [];
  if (marks !== undefined && heading !== undefined) {
    return `<h${marks.length} id="${slug(heading)}">${inline(heading).text}</h${marks.length}>`;
  }
  if (text.startsWith('- ')) {
    const items = text.split('\n').map((line) => `<li>${inline(line.slice(2)).text}</li>`);
    return `<ul>${items.join('')}</ul>`;
  }
  return `<p>${inline(text).text}</p>`;
}

function links(text: string): string {
  return text.replace(/\[([^\]]+)\]\(([^)]+)\)/g, '<a href="$2">$1</a>');
}

function slug(heading: string): string {
  return heading.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}
