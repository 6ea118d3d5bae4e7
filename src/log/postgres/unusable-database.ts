/** The database that a connection leads to can't be used as this log; the message is one line. */
export class UnusableDatabase extends Error {}

/** It holds another log. The ids are public. */
export class OtherLog extends UnusableDatabase {
  constructor(found: string | undefined, logId: string) {
    super(
      `the database holds ${found === undefined ? 'no log' : `log ${found}`}, and this service writes log ${logId}`,
    );
  }
}
