// How the baseline stores moves in PostgreSQL: one statement for all pending moves, one statement at a time.
import pg from 'pg';
import { BIGINT, BYTEA, encode, TEXT } from '../../../src/log/postgres/arrays.ts';
import type { BaselineRequest } from './evidence.ts';
import type { Store } from './store.ts';

const TABLE = `CREATE TABLE moves (chamber_id bigint, event_id bigint, body bytea, input text, signature text,
  PRIMARY KEY (chamber_id, event_id))`;
const INSERT =
  'INSERT INTO moves SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[], $5::text[])';

interface Due {
  readonly chamberId: number;
  readonly eventId: number;
  readonly request: BaselineRequest;
  readonly resolve: (eventId: number) => void;
}

export async function openPostgresStore(connectionString: string): Promise<Store> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(TABLE);
  const heads = new Map<number, number>();
  let due: Due[] = [];
  let isWriting = false;

  async function write(): Promise<void> {
    isWriting = true;
    while (due.length > 0) {
      const batch = due;
      due = [];
      const values = [
        encode(
          BIGINT,
          batch.map(({ chamberId }) => chamberId),
        ),
        encode(
          BIGINT,
          batch.map(({ eventId }) => eventId),
        ),
        encode(
          BYTEA,
          batch.map(({ request }) => request.body),
        ),
        encode(
          TEXT,
          batch.map(({ request }) => request.signatureInput),
        ),
        encode(
          TEXT,
          batch.map(({ request }) => request.signature),
        ),
      ];
      await client.query({ name: 'insert', text: INSERT, values });
      for (const { resolve, eventId } of batch) resolve(eventId);
    }
    isWriting = false;
  }

  return (chamberId, request) => {
    const eventId = (heads.get(chamberId) ?? 0) + 1;
    heads.set(chamberId, eventId);
    return new Promise((resolve) => {
      due.push({ chamberId, eventId, request, resolve });
      if (!isWriting) setImmediate(() => isWriting || void write());
    });
  };
}
