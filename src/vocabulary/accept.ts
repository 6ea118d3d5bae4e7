// Content negotiation (RFC 9110, 12.5).

/** Whether an Accept header names the media type with a quality above 0 (RFC 9110, 12.5.1). `wanted` must be lowercase. */
export function accepts(accept: string | undefined, wanted: string): boolean {
  return (accept?.toLowerCase().split(',') ?? []).some((item) => {
    const [type, ...parameters] = item.split(';').map((part) => part.trim());
    return type === wanted && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** Best first. */
export const ENCODINGS = ['br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Returns the best encoding that an Accept-Encoding header names with a quality above 0 (RFC 9110, 12.5.3); ignores `*`. */
export function acceptedEncoding(header = '', known: readonly Encoding[] = ENCODINGS): Encoding | undefined {
  const items = header.toLowerCase().split(',');
  const accepted = items.filter((item) => !/;\s*q=0(?:\.0*)?\s*$/.test(item)).map((item) => item.split(';')[0]?.trim());
  return known.find((encoding) => accepted.includes(encoding));
}
