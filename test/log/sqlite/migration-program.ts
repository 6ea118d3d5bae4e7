// A process that can be killed while it migrates a database. It starts when it reads a line from standard input.
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';

process.stdout.write('ready\n');
process.stdin.once('data', async () => {
  await migrateDatabase(process.argv[2] as string);
  process.stdout.write('done\n');
  process.exit(0);
});
