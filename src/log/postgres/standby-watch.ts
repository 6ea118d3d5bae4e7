// Looks from time to time whether a standby follows the server that no commit waits for: promoted, it may lack moves that got their response.
import { detach } from '../../process/detach.ts';
import type { Sql } from '../sql/sql.ts';

const INTERVAL_MS = 10_000;

/** Copies that pg_basebackup and pg_receivewal make are not promoted. */
const ASYNCHRONOUS = `
SELECT current_setting('synchronous_standby_names') = '' AND EXISTS (
  SELECT FROM pg_stat_replication
  WHERE state IS DISTINCT FROM 'backup' AND application_name NOT IN ('pg_basebackup', 'pg_receivewal')
) AS is_asynchronous`;

export class StandbyWatch {
  readonly #query: Sql['query'];
  #isAsynchronous = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(query: Sql['query']) {
    this.#query = query;
  }

  get isAsynchronous(): boolean {
    return this.#isAsynchronous;
  }

  /** One look after the other, however long one takes; a failed one changes nothing. */
  async look(): Promise<void> {
    try {
      const [row] = await this.#query<{ readonly is_asynchronous: boolean }>(ASYNCHRONOUS);
      this.#isAsynchronous = row?.is_asynchronous === true;
    } catch {
      // The loss of the server shows elsewhere.
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => detach(this.look()), INTERVAL_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
