import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { describeWithholding } from '../withheld.ts';

async function begin() {
  const place = temporaryDatabase();
  return { place, open: () => openSqliteStore(place) };
}

describeWithholding(begin);
