import { TABLES_WITH_TEXTS } from '../../../src/log/postgres/withholding.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { describeKills } from '../withholding-kills.ts';

describeKills(async () => {
  const place = await temporaryPostgres();
  return {
    place,
    open: () => openStore(place),
    bytes: async () => {
      const rows = await Promise.all(
        TABLES_WITH_TEXTS.map((table) =>
          execute(place, `SELECT encode(convert_to(${table}::text, 'UTF8'), 'escape') AS row FROM ${table}`),
        ),
      );
      const lines = await execute(place, "SELECT encode(line, 'escape') AS row FROM events");
      return [...rows.flat(), ...lines].map(({ row }) => String(row)).join('\n');
    },
  };
});
