import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { atEnd, temporaryDatabase } from '../../kit/temporary.ts';
import { describeLists, describePort, describeTree } from '../conformance.ts';

async function open() {
  const path = temporaryDatabase();
  let store = openSqliteStore(path);
  atEnd(() => store.close());
  const reopen = async () => {
    await store.close();
    store = openSqliteStore(path);
    return store;
  };
  return { store, reopen };
}

describePort(open);
describeLists(open);
describeTree(open);
