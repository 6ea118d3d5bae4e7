/** Whether an Accept header names the media type. Types are case-insensitive, quality 0 means no (RFC 9110, 12.5.1). */
export function accepts(accept: string | undefined, wanted: string): boolean {
  return (accept?.toLowerCase().split(',') ?? []).some((item) => {
    const [type, ...parameters] = item.split(';').map((part) => part.trim());
    return type === wanted && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
