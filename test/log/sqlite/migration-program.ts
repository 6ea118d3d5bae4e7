// Opens a database, which migrates it, once its standard input says so: a process that can be killed meanwhile.
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';

process.stdout.write('ready\n');
process.stdin.once('data', async () => {
  const store = openSqliteStore(process.argv[2] as string);
  process.stdout.write('done\n');
  await store.close();
  process.exit(0);
});
