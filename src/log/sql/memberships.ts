// Decodes the rows of the derived tables that describe a chamber and one of its members.
import type { Membership } from '../../../projections/todo.ts';
import { decodeChamber, decodeTurns } from './listing-json.ts';

export interface MembershipRow {
  readonly listing: string;
  readonly turn_order: number | null;
  readonly has_committed: boolean | number;
  readonly has_revealed: boolean | number;
  readonly turn: string | null;
  readonly last_event_id: number;
}

export function toMembership(did: string, row: MembershipRow): Membership {
  return {
    chamber: decodeChamber(row.listing),
    member: memberOf(did, row),
    turns: row.turn === null ? null : decodeTurns(row.turn),
    lastEventId: row.last_event_id,
  };
}

type MemberColumns = Pick<MembershipRow, 'turn_order' | 'has_committed' | 'has_revealed'>;

/** SQLite returns 0 and 1 for booleans. */
export function memberOf(did: string, row: MemberColumns): Membership['member'] {
  return {
    did,
    turnOrder: row.turn_order,
    hasCommitted: Boolean(row.has_committed),
    hasRevealed: Boolean(row.has_revealed),
  };
}
