import { openLog, temporaryPostgres } from '../../kit/postgres.ts';
import { describePort } from '../conformance.ts';

describePort(async () => {
  const url = await temporaryPostgres();
  let log = await openLog(url);
  const reopen = async () => {
    await log.close();
    log = await openLog(url);
    return log;
  };
  return { log, reopen };
});
