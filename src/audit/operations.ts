// The path of the request that stands behind an event.
import { moveOfEvent } from '../moves/registry.ts';
import type { MoveEvent } from '../vocabulary/events.ts';

export interface SignedTarget {
  /** The service's address as the client used it. */
  readonly base: string;
}

/** The target of the event's request, or undefined when the path is not that of the operation in the chamber. */
export function signedTarget({ type, chamberId, request }: MoveEvent): SignedTarget | undefined {
  const path = moveOfEvent[type].path.replace(':id', String(chamberId));
  const url = parseUrl(request?.targetUri ?? '');
  if (url === undefined || !url.path.endsWith(path)) return undefined;
  return { base: url.origin + url.path.slice(0, -path.length) };
}

/** Read as the service's router reads it: dot segments resolved, %-encodings decoded, the query left aside. */
function parseUrl(text: string): { origin: string; path: string } | undefined {
  try {
    const { origin, pathname } = new URL(text);
    return { origin, path: decodeURI(pathname) };
  } catch {
    return undefined;
  }
}
