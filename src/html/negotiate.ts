// Decides which requests get a page: those from browsers (RFC 9110, 12.5.1). Requests without Accept, with `*/*`, with a malformed header
// or with a preference for another type get the response for programs.

interface Range {
  readonly type: string;
  readonly quality: number;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9a-z-]+";
const PARAMETER = new RegExp(`^(${TOKEN})=(${TOKEN}|"[^"\\\\]*")$`);
const TYPE = new RegExp(`^(?:\\*/\\*|(?!\\*/)${TOKEN}/${TOKEN})$`);
const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Whether text/html has a higher quality than `other`, and the header either contains no `*\/*` or, as in browsers, also contains XHTML.
 */
export function wantsHtml(accept: string | undefined, other = 'application/json'): boolean {
  const ranges = parseAccept((accept ?? '').toLowerCase());
  if (ranges === undefined) return false;
  const names = new Set(ranges.map(({ type }) => type));
  if (names.has('*/*') && !names.has('application/xhtml+xml')) return false;
  return qualityOf(ranges, 'text/html') > qualityOf(ranges, other);
}

/** Returns undefined for a malformed header. Omits ranges with parameters that no representation has. */
function parseAccept(accept: string): readonly Range[] | undefined {
  const ranges: Range[] = [];
  for (const item of accept.split(',')) {
    // Ignores empty list elements (RFC 9110, 5.6.1.2).
    if (item.trim() === '') continue;
    const [type = '', ...parameters] = item.split(';').map((part) => part.trim());
    if (!TYPE.test(type)) return undefined;
    let quality = 1;
    let isOffered = true;
    for (const parameter of parameters) {
      const [, name, value = ''] = PARAMETER.exec(parameter) ?? [];
      if (name === undefined || (name === 'q' && !QUALITY.test(value))) return undefined;
      if (name === 'q') quality = Number(value);
      else if (name !== 'charset' || value.replaceAll('"', '') !== 'utf-8') isOffered = false;
    }
    if (isOffered) ranges.push({ type, quality });
  }
  return ranges;
}

/** The most specific range applies. */
function qualityOf(ranges: readonly Range[], type: string): number {
  for (const pattern of [type, type.replace(/\/.*/, '/*'), '*/*']) {
    const matching = ranges.filter((range) => range.type === pattern).map(({ quality }) => quality);
    if (matching.length > 0) return Math.max(...matching);
  }
  return 0;
}
