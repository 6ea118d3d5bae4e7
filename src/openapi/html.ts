// HTML as a tagged template: whatever is put in is escaped, unless it is HTML of this template itself.

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
