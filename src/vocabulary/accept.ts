/** Whether an Accept header takes server-sent events. Media types are case-insensitive, quality 0 means no (RFC 9110, 12.5.1). */
export function acceptsEventStream(accept: string | undefined): boolean {
  return (accept?.toLowerCase().split(',') ?? []).some((item) => {
    const [type, ...parameters] = item.split(';').map((part) => part.trim());
    return type === 'text/event-stream' && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
