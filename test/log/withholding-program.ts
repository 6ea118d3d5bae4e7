// A process that can be killed while it withholds lines: `node withholding-program.ts PLACE STUBS`. It starts when it reads a
// line from standard input, and withholds one stub of the file after another, each once the bytes of the previous one are erased.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPostgresStore } from '../../src/log/postgres/store.ts';
import { toStream } from '../../src/log/sql/sql.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';

const [place = '', stubs = ''] = process.argv.slice(2);
const store = place.startsWith('postgres:')
  ? await openPostgresStore({ url: place, connectionsMax: 2 })
  : openSqliteStore(place);
process.stdout.write('ready\n');
process.stdin.once('data', async () => {
  for (const text of readFileSync(stubs, 'utf8').trimEnd().split('\n')) {
    const { eventId, chamberId } = JSON.parse(text);
    await store.withholding.withhold([{ stream: toStream(chamberId), eventId, line: Buffer.from(text) }]);
    while (store.withholding.erasure.isPending) await sleep(1);
  }
  process.stdout.write('done\n');
  process.exit(0);
});
