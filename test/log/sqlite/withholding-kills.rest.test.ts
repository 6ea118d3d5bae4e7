import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { describeKills } from '../withholding-kills.ts';

describeKills(async () => {
  const place = temporaryDatabase();
  const folder = dirname(place);
  return {
    place,
    open: () => openSqliteStore(place),
    bytes: async () =>
      readdirSync(folder)
        .map((name) => readFileSync(join(folder, name), 'latin1'))
        .join(''),
  };
});
