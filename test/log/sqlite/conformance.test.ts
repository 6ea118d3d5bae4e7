import { openSqliteLog, type SqliteLog } from '../../../src/log/sqlite/sqlite-log.ts';
import { atEnd, temporaryDatabase } from '../../kit/temporary.ts';
import { describePort } from '../conformance.ts';

describePort(async () => {
  const path = temporaryDatabase();
  let log: SqliteLog = openSqliteLog(path);
  atEnd(() => log.close());
  const reopen = async () => {
    await log.close();
    log = openSqliteLog(path);
    return log;
  };
  return { log, reopen };
});
