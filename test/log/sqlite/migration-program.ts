// Opens a database, which migrates it, once its standard input says so: a process that can be killed meanwhile.
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';

process.stdout.write('ready\n');
process.stdin.once('data', async () => {
  await migrateDatabase(process.argv[2] as string);
  process.stdout.write('done\n');
  process.exit(0);
});
