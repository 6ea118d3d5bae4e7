// The read model's queries over the derived tables, in SQL that every store runs: `$1` stands for the first value. Each reads about as
// many rows as it returns, by an index; conditions that always hold (`> ''`) make SQLite search instead of scan. What depends on how
// a store finds phases and memberships is the store's own.
import type { ChamberListing } from '../../projections/listings.ts';
import type { Membership } from '../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../projections/views.ts';
import type { Millis, Phase } from '../vocabulary/values.ts';
import type { ColumnValue } from './derived-tables.ts';
import { decodeChamber } from './listing-json.ts';
import type { ChamberListQuery, GraduatedQuery, ReadModel, Seat } from './read-model.ts';

export const LIST_QUERIES = {
  chambers: 'SELECT listing FROM chambers WHERE chamber_id < $1 ORDER BY chamber_id DESC LIMIT $2',
  chambersOf: `SELECT listing FROM members JOIN chambers USING (chamber_id)
    WHERE did = $1 AND chamber_id < $2 AND turn_order IS NOT NULL ORDER BY chamber_id DESC LIMIT $3`,
  graduated: `SELECT view FROM ideas WHERE graduated_at > '' AND (graduated_at, chamber_id, slot) < ($1, $2, $3)
    ORDER BY graduated_at DESC, chamber_id DESC, slot DESC LIMIT $4`,
  idea: `SELECT view FROM ideas WHERE lower(ticker) = $1
    ORDER BY graduated_at DESC NULLS LAST, proposed_at DESC, chamber_id DESC LIMIT 1`,
  ideaOfChamber: `SELECT view FROM ideas WHERE chamber_id = $1 AND lower(ticker) = $2`,
  unsettled: `SELECT chamber_id FROM chambers WHERE NOT is_settled AND allocate_reveal_deadline <= $1
    ORDER BY allocate_reveal_deadline, chamber_id LIMIT $2`,
  settled: `SELECT chamber_id FROM chambers WHERE is_settled AND allocate_reveal_deadline > 0
    ORDER BY allocate_reveal_deadline DESC LIMIT $1`,
  openChambers: `SELECT count(*) AS count FROM
    (SELECT 1 FROM chambers WHERE creator_did = $1 AND NOT is_committed LIMIT $2) AS open`,
  agentRecord: `SELECT count(*) AS chambers, max(chamber_id) AS newest,
      (SELECT count(*) FROM ideas WHERE creator_did = $1) AS proposed,
      (SELECT count(*) FROM ideas WHERE creator_did = $1 AND graduated_at > '') AS graduated
    FROM members WHERE did = $1 AND turn_order IS NOT NULL`,
  contact: 'SELECT operator_email FROM contacts WHERE did = $1',
} as const;

type QueryName = keyof typeof LIST_QUERIES;

/** Runs a query; the numbers of a row may be texts. */
export type RunListQuery = <Row>(name: QueryName, values: readonly ColumnValue[]) => Promise<readonly Row[]>;

export interface PhaseQuery {
  readonly phase: Phase;
  readonly before: number;
  readonly limit: number;
  readonly now: Millis;
}

export interface ListingRow {
  readonly listing: string;
}

interface ViewRow {
  readonly view: string;
}

interface ChamberIdRow {
  readonly chamber_id: number | string;
}

type AgentRecordRow = Readonly<Record<'chambers' | 'newest' | 'proposed' | 'graduated', number | string | null>>;

export abstract class DerivedLists implements ReadModel {
  readonly #run: RunListQuery;

  constructor(run: RunListQuery) {
    this.#run = run;
  }

  abstract listMemberships(did: string, limit: number): Promise<readonly Membership[]>;
  abstract listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]>;
  /** The chambers that are in the phase at `now`, newest first. */
  protected abstract listPhase(query: PhaseQuery): Promise<readonly ListingRow[]>;

  async listChambers({ phase, before = ABOVE_ALL_IDS, limit, now }: ChamberListQuery) {
    const rows =
      phase === undefined
        ? await this.#run<ListingRow>('chambers', [before, limit])
        : await this.listPhase({ phase, before, limit, now });
    return rows.map(toListing);
  }

  async listChambersOf(did: string, { before = ABOVE_ALL_IDS, limit }: Pick<ChamberListQuery, 'before' | 'limit'>) {
    return (await this.#run<ListingRow>('chambersOf', [did, before, limit])).map(toListing);
  }

  async listGraduatedIdeas({ limit, after = AFTER_ALL_TIMES }: GraduatedQuery): Promise<readonly IdeaView[]> {
    const { graduatedAt, chamberId, slot } = after;
    return (await this.#run<ViewRow>('graduated', [graduatedAt, chamberId, slot, limit])).map(toIdea);
  }

  async findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    // No text of PostgreSQL holds it.
    if (ticker.includes('\0')) return undefined;
    const lowerCase = ticker.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
    const [found] =
      chamberId === undefined
        ? await this.#run<ViewRow>('idea', [lowerCase])
        : await this.#run<ViewRow>('ideaOfChamber', [chamberId, lowerCase]);
    return found && toIdea(found);
  }

  async listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return (await this.#run<ChamberIdRow>('unsettled', [now, limit])).map(toChamberId);
  }

  async listSettled(limit: number): Promise<readonly number[]> {
    return (await this.#run<ChamberIdRow>('settled', [limit])).map(toChamberId);
  }

  async countOpenChambers(creatorDid: string, max: number): Promise<number> {
    const [row] = await this.#run<{ readonly count: number | string }>('openChambers', [creatorDid, max]);
    return Number(row?.count);
  }

  async agentRecord(did: string): Promise<AgentRecord> {
    const [row] = await this.#run<AgentRecordRow>('agentRecord', [did]);
    const newest = row?.newest == null ? null : Number(row.newest);
    const chambers = { count: Number(row?.chambers), newest };
    return { chambers, proposed: Number(row?.proposed), graduated: Number(row?.graduated) };
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    const [row] = await this.#run<{ readonly operator_email: string | Buffer }>('contact', [did]);
    return row?.operator_email.toString();
  }
}

const ABOVE_ALL_IDS = Number.MAX_SAFE_INTEGER;

/** Sorts after every timestamp. */
const AFTER_ALL_TIMES = { graduatedAt: '~', chamberId: 0, slot: 0 };

function toListing({ listing }: ListingRow): ChamberListing {
  return decodeChamber(listing);
}

function toIdea({ view }: ViewRow): IdeaView {
  return JSON.parse(view) as IdeaView;
}

function toChamberId({ chamber_id: id }: ChamberIdRow): number {
  return Number(id);
}
