// Which request stands behind which event: the operation, the path that was signed, and the body that its payload implies.
import { MOVE_PATHS, type MoveOperation } from '../vocabulary/commands.ts';
import type { MoveEvent, MovePayloads } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';

export const OPERATIONS = {
  'chamber.created': 'createChamber',
  'chamber.joined': 'join',
  'chamber.proposed': 'propose',
  'chamber.debated': 'debate',
  'chamber.passed': 'pass',
  'allocation.committed': 'commit',
  'allocation.revealed': 'reveal',
} as const satisfies Record<keyof MovePayloads, MoveOperation>;

export interface SignedTarget {
  /** The service's address as the client used it. */
  readonly base: string;
}

/** The target of the event's request, or undefined when the path is not that of the operation in the chamber. */
export function signedTarget({ type, chamberId, request }: MoveEvent): SignedTarget | undefined {
  const operation = OPERATIONS[type];
  const path = operation === 'createChamber' ? '/chambers' : `/chambers/${chamberId}/${MOVE_PATHS[operation]}`;
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

/** The body that asks for what the payload says, without what the service assigned. */
export function impliedBody(event: MoveEvent): object {
  switch (event.type) {
    case 'chamber.created': {
      const { deadlines, turnSeconds, ...rest } = event.payload;
      return { ...rest, ...deadlines, ...(turnSeconds === null ? {} : { turnSeconds }) };
    }
    case 'chamber.joined':
    case 'chamber.passed':
      return {};
    case 'chamber.proposed': {
      const { name, ticker, description } = event.payload;
      return { name, ticker, description };
    }
    case 'chamber.debated': {
      const { ideaId, comment, refinement } = event.payload;
      return { ideaId, comment, ...(refinement === null ? {} : { refinement }) };
    }
    case 'allocation.committed':
    case 'allocation.revealed':
      return event.payload;
    default:
      return unreachable(event);
  }
}
