import { TABLES_WITH_TEXTS } from '../../../src/log/postgres/withholding.ts';
import { execute } from '../../kit/postgres.ts';
import { SECRET } from '../withheld.ts';

/** Returns whether a row of any table holds the secret; a bytea column shows it in hexadecimal. */
export async function remains(url: string): Promise<boolean> {
  const forms = [SECRET, Buffer.from(SECRET).toString('hex')];
  const found = await Promise.all(
    TABLES_WITH_TEXTS.flatMap((table) =>
      forms.map((form) => execute(url, `SELECT FROM ${table} WHERE position('${form}' IN ${table}::text) > 0`)),
    ),
  );
  return found.some((rows) => rows.length > 0);
}
