// The contacts and what is remembered of registrations, which no line holds.
import type { Database, Statement } from 'better-sqlite3';
import type { Registration } from '../log.ts';

interface RegistrationRow {
  readonly did: string;
  readonly event_id: number;
}

export class Registrations {
  readonly #writeContact: Statement<[string, string]>;
  readonly #write: Statement<[Buffer, string, number, number]>;
  readonly #find: Statement<[Buffer], RegistrationRow>;

  constructor(db: Database) {
    this.#writeContact = db.prepare('INSERT OR REPLACE INTO contacts VALUES (?, ?)');
    this.#write = db.prepare('INSERT INTO registrations VALUES (?, ?, ?, ?)');
    this.#find = db.prepare('SELECT did, event_id FROM registrations WHERE signature_hash = ?');
  }

  write({ did, eventId, signature, operatorEmail }: Registration): void {
    if (operatorEmail !== undefined) this.#writeContact.run(did, operatorEmail);
    if (signature === null) return;
    this.#write.run(Buffer.from(signature, 'latin1'), did, eventId, Number(operatorEmail !== undefined));
  }

  /** The account and the event that a registration with this hiddenSignatureKey led to. */
  find(signature: string): RegistrationRow | undefined {
    return this.#find.get(Buffer.from(signature, 'latin1'));
  }
}
