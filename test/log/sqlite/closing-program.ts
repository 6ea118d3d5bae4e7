// Withholds the stub in a file and immediately closes the log: `node closing-program.ts PATH STUB`.
import { readFileSync } from 'node:fs';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';

const [path = '', stub = ''] = process.argv.slice(2);
const store = openSqliteStore(path);
await store.withholding.withhold([{ stream: 1, eventId: 1, line: readFileSync(stub) }]);
await store.close();
