// Stores agents' callbacks in a relational database.
import type { Millis } from '../../vocabulary/values.ts';
import type {
  CallbackMembership,
  CallbackStore,
  ChamberMember,
  ChamberWithTurns,
  MemberSelector,
  RememberedSignature,
  RemovalReason,
  StoredCallback,
} from '../callbacks.ts';
import { decodeChamber, decodeTurns } from './listing-json.ts';
import { type MembershipRow, memberOf } from './memberships.ts';
import { type Columns, type Dialect, jsonRows, type Sql, type SqlValue } from './sql.ts';
import { CALLBACK_SIGNATURES, CALLBACKS, upsert } from './tables.ts';

/** Runs a durable statement, and returns the number of changed rows. */
export type Change = (text: string, values: readonly SqlValue[]) => Promise<number>;

interface CallbackRow {
  readonly did: string;
  readonly url: string | null;
  readonly since: Millis;
  readonly succeeded_at: Millis | null;
  readonly failures: number;
  readonly last_at: Millis | null;
  readonly last_status: number | null;
  readonly removed: string | null;
}

export class SqlCallbacks implements CallbackStore {
  readonly #sql: Sql;
  readonly #change: Change;

  constructor(sql: Sql, change: Change) {
    this.#sql = sql;
    this.#change = change;
  }

  async get(did: string): Promise<StoredCallback | undefined> {
    const [row] = await this.#sql.query<CallbackRow>('SELECT * FROM callbacks WHERE did = $1', [did]);
    return row && toCallback(row);
  }

  async put({ did, url, since }: Parameters<CallbackStore['put']>[0]): Promise<void> {
    await this.#change(PUT, [did, url, since]);
  }

  async remove(did: string): Promise<void> {
    await this.#change('DELETE FROM callbacks WHERE did = $1', [did]);
  }

  async record(changed: readonly StoredCallback[]): Promise<void> {
    if (changed.length === 0) return;
    await this.#change(record(this.#sql.dialect), [jsonRows(RECORDED, changed.map(toRecorded))]);
  }

  async remember({ key, did, created }: RememberedSignature, oldest: number): Promise<boolean> {
    await this.#change(FORGET, [oldest]);
    return (await this.#change(REMEMBER, [created, Buffer.from(key, 'latin1'), did])) > 0;
  }

  async forget({ key, created }: RememberedSignature): Promise<void> {
    await this.#change(FORGET_ONE, [created, Buffer.from(key, 'latin1')]);
  }

  async listMemberships(after: CallbackMembership, limit: number): Promise<readonly CallbackMembership[]> {
    return (await this.#sql.query<MemberRow>(MEMBERSHIPS, [after.did, after.chamberId, limit])).map(toMember);
  }

  async listChambersWithTurns(chamberIds: readonly number[]): Promise<readonly ChamberWithTurns[]> {
    const listed = jsonRows(
      LISTED,
      chamberIds.map((chamber) => ({ chamber })),
    );
    const rows = await this.#sql.query<ChamberWithTurnsRow>(chambersWithTurns(this.#sql.dialect), [listed]);
    return rows.map(({ listing, turn }) => ({
      chamber: decodeChamber(listing),
      turns: turn === null ? null : decodeTurns(turn),
    }));
  }

  async listMembers(selectors: readonly MemberSelector[]): Promise<readonly ChamberMember[]> {
    const listed = selectors.map(({ chamberId, turnOrder }) => ({ chamber: chamberId, turn: turnOrder }));
    const rows = await this.#sql.query<SelectedRow>(selected(this.#sql.dialect), [jsonRows(SELECTORS, listed)]);
    return rows.map((row) => ({ chamberId: row.chamber_id, member: memberOf(row.did, row) }));
  }
}

type MemberRow = Readonly<{ did: string; chamber_id: number }>;
type SelectedRow = MemberRow & Pick<MembershipRow, 'turn_order' | 'has_committed' | 'has_revealed'>;
type ChamberWithTurnsRow = Readonly<{ listing: string; turn: string | null }>;

function toMember({ did, chamber_id: chamberId }: MemberRow): CallbackMembership {
  return { did, chamberId };
}

function toCallback(row: CallbackRow): StoredCallback {
  const { did, url, since, succeeded_at: succeededAt, failures, last_at: at, last_status: status, removed } = row;
  return {
    did,
    url,
    since,
    succeededAt,
    failures,
    last: at === null ? null : { at, status },
    // Only this class writes the column.
    removed: removed as RemovalReason | null,
  };
}

function toRecorded({ did, url, since, succeededAt, failures, last, removed }: StoredCallback) {
  return {
    at_did: did,
    at_since: since,
    new_url: url,
    new_succeeded: succeededAt,
    new_failures: failures,
    new_at: last?.at ?? null,
    new_status: last?.status ?? null,
    new_removed: removed,
  };
}

const PUT = upsert(CALLBACKS, 'VALUES ($1, $2, $3, NULL, 0, NULL, NULL, NULL)');
const REMEMBER = `INSERT INTO ${CALLBACK_SIGNATURES.name} VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`;
const FORGET_ONE = `DELETE FROM ${CALLBACK_SIGNATURES.name} WHERE created = $1 AND signature_hash = $2`;
const FORGET = `DELETE FROM ${CALLBACK_SIGNATURES.name} WHERE created < $1`;

const RECORDED: Columns = {
  at_did: 'text',
  at_since: 'integer',
  new_url: 'text',
  new_succeeded: 'integer',
  new_failures: 'integer',
  new_at: 'integer',
  new_status: 'integer',
  new_removed: 'text',
};

const record = ({ listed }: Dialect) => `UPDATE callbacks SET url = new_url, succeeded_at = new_succeeded,
    failures = new_failures, last_at = new_at, last_status = new_status, removed = new_removed
  FROM ${listed('$1', RECORDED)} WHERE did = at_did AND since = at_since`;

const MEMBERSHIPS = `SELECT did, chamber_id FROM callbacks JOIN members USING (did)
  WHERE did >= $1 AND (did > $1 OR chamber_id > $2) AND url IS NOT NULL AND is_open ORDER BY did, chamber_id LIMIT $3`;

const LISTED: Columns = { chamber: 'integer' };
const SELECTORS: Columns = { chamber: 'integer', turn: 'integer' };

const chambersWithTurns = ({ listed }: Dialect) => `SELECT listing, turn FROM ${listed('$1', LISTED)}
  JOIN chambers ON chambers.chamber_id = chamber LEFT JOIN turns ON turns.chamber_id = chamber`;

const selected = ({ listed }: Dialect) => `SELECT did, chamber_id, turn_order, has_committed, has_revealed
  FROM ${listed('$1', SELECTORS)}
  JOIN members ON chamber_id = chamber JOIN callbacks USING (did)
  WHERE (turn IS NULL OR turn_order = turn) AND is_open AND url IS NOT NULL`;
