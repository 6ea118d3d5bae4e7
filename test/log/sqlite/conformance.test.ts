import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { atEnd, temporaryDatabase } from '../../kit/temporary.ts';
import { describePort } from '../conformance.ts';

describePort(async () => {
  const path = temporaryDatabase();
  let store = openSqliteStore(path);
  atEnd(() => store.close());
  const reopen = async () => {
    await store.close();
    store = openSqliteStore(path);
    return store;
  };
  return { store, reopen };
});
