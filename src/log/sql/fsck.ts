// Checks a whole log against its raw lines, read-only, even while services run on it: every line and its columns, the derived tables, the
// registrations, the withheld lines, the published tree, the logId, and the database itself.
import { LOG_ID } from '../../vocabulary/values.ts';
import type { Fault, FsckSummary } from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import {
  FOLDED_REGISTRATIONS,
  FOLDED_STUBS,
  rebuildDerivedTables,
  temporaryTable,
  type VerifiedLog,
} from './rebuild-derived-tables.ts';
import { type Table, toStream } from './sql.ts';
import { findTreeFault } from './stored-tree.ts';
import { TABLES } from './tables.ts';
import { readMeta, type WholeLog } from './whole-log.ts';

/** Reports the first fault in the lines of each stream. Faults with a position come first, in the order of the log. */
export async function fsck(log: WholeLog, report: (fault: Fault) => void): Promise<FsckSummary> {
  const logId = (await readMeta(log, 'log_id')) ?? '';
  const check = new Fsck(log);
  if (!LOG_ID.test(logId)) check.note('the log has no logId of 32 hex digits');
  await check.run(LOG_ID.test(logId));
  const orderOf = ({ position }: Fault) => position ?? Number.POSITIVE_INFINITY;
  for (const fault of check.faults.toSorted((a, b) => orderOf(a) - orderOf(b))) report(fault);
  const { events, chambers, accounts } = check.folded;
  return { logId, events, chambers, accounts, faults: check.faults.length };
}

class Fsck {
  readonly faults: Fault[] = [];
  folded: VerifiedLog = { events: 0, chambers: 0, accounts: 0, badStreams: new Set() };
  readonly #log: WholeLog;

  constructor(log: WholeLog) {
    this.#log = log;
  }

  async run(hasLogId: boolean): Promise<void> {
    const log = this.#log;
    const isFolded = await this.#read('the lines', async () => {
      this.folded = await rebuildDerivedTables(log, { into: 'temporary', onFault: (fault) => this.faults.push(fault) });
    });
    if (isFolded) {
      await this.#read('the derived tables', async () => {
        for (const table of Object.values(TABLES)) await this.#compare(differences(table), mismatchOf(table.name));
        await this.#compare(
          `SELECT stream, event_id FROM snapshots EXCEPT SELECT CAST(stream AS text), event_id FROM ${log.dialect.lines}`,
          mismatchOf('snapshots'),
        );
      });
      await this.#read('the registrations', async () => {
        const registered = `FROM ${FOLDED_REGISTRATIONS.name}`;
        await this.#compare(
          `SELECT did AS stream, event_id FROM registrations EXCEPT SELECT stream, event_id ${registered}`,
          STRAY,
        );
        await this.#compare(
          `SELECT did AS stream, NULL AS event_id FROM contacts WHERE did NOT IN (SELECT stream ${registered})`,
          STRAY,
        );
        await this.#compare(
          `SELECT did AS stream, NULL AS event_id FROM callbacks WHERE did NOT IN (SELECT stream ${registered})`,
          STRAY,
        );
      });
      await this.#read('the withheld lines', async () => {
        const [numbered, stubs] = ['withheld', FOLDED_STUBS.name].map((from) => `SELECT stream, event_id FROM ${from}`);
        await this.#compare(`${stubs} EXCEPT ${numbered}`, 'its line is a stub that has no number in table withheld');
        await this.#compare(
          `${numbered} EXCEPT ${stubs}`,
          'it has a number in table withheld, but its line is not a stub',
        );
        const [row] = await log.query<{ readonly count: number; readonly last: number }>(NUMBERS);
        if (row !== undefined && row.count !== row.last) this.note('the numbers in table withheld have a gap');
      });
    }
    await this.#read('the file', () => log.checkDatabase((fault) => this.faults.push(fault), this.folded.badStreams));
    if (!hasLogId) return;
    await this.#read('the published tree', async () => {
      const fault = await findTreeFault(log);
      if (fault !== undefined && !this.#isBad(fault.stream)) this.faults.push(fault);
    });
  }

  /** Notes the error if a damaged file makes a pass fail, so that the other passes still run. Returns whether this pass succeeded. */
  async #read(what: string, pass: () => Promise<void>): Promise<boolean> {
    try {
      await pass();
      return true;
    } catch (error) {
      if (!this.#log.survivesErrors) throw error;
      this.note(`${what} cannot be read: ${error instanceof Error ? error.message : error}`);
      return false;
    }
  }

  note(problem: string, stream: StreamId | null = null, eventId: number | null = null): void {
    this.faults.push({ position: null, stream, eventId, problem });
  }

  /** Notes the problem for each row that the query returns, except in bad streams, whose lines have a reported fault. */
  async #compare(query: string, problem: string): Promise<void> {
    const rows = await this.#log.query<{ readonly stream: string; readonly event_id: number | null }>(query);
    for (const { stream, event_id: eventId } of rows) {
      if (!this.#isBad(toStream(stream))) this.note(problem, toStream(stream), eventId);
    }
  }

  #isBad(stream: StreamId | null): boolean {
    return stream !== null && this.folded.badStreams.has(stream);
  }
}

const NUMBERS = 'SELECT count(*) AS count, coalesce(max(number), 0) AS last FROM withheld';

const STRAY = 'an e-mail address, a callback or a signature is stored for a registration that is not in the log';

function mismatchOf(table: string): string {
  return `table ${table} does not match the log: run chambers rebuild`;
}

/** Selects the chambers whose stored rows differ from the folded ones. */
function differences(table: Table): string {
  const columns = table.columns.map(({ name }) => name);
  const [stored, folded] = [table, temporaryTable(table)].map(({ name }) => `SELECT ${columns} FROM ${name}`);
  return `SELECT DISTINCT CAST(chamber_id AS text) AS stream, NULL AS event_id FROM (
    SELECT * FROM (${stored} EXCEPT ${folded}) AS stored UNION ALL SELECT * FROM (${folded} EXCEPT ${stored}) AS folded) AS rows`;
}
