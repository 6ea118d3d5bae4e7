// `chambers withhold-in`: a backup, or another copy of a log, loses the texts that the service has withheld.
import { createReadStream } from 'node:fs';
import { isPostgres } from '../log/postgres/database-url.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { splitLines } from '../reading/lines.ts';
import { openResponse } from '../reading/response.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, printMembers, printNotice } from './output.ts';

export const withholdInCommand: CommandSpec = {
  name: 'withhold-in',
  summary:
    'Erases the texts that a service has withheld from a backup or another copy of its log, which no service has open',
  args: { '<database>': 'the file or postgres:// URL' },
  required: { '--from <source>': "the service's list, <base URL>/log/<logId>/withheld, or a file of its lines" },
  examples: [
    'withhold-in backup.db --from=https://chambers.example.org/log/5a1f…/withheld',
    'withhold-in backup.db --from=stubs.ndjson',
  ],
  run: withholdIn,
};

async function withholdIn({ args: [database = ''], options: { from = '' }, isJson }: Input): Promise<void> {
  const { writeWholeLog } = await import('../log/open-log.ts');
  const { withholdIn: put } = await import('../log/sql/withhold-in.ts');
  if (!isPostgres(database)) await migrate(database);
  const lines = /^https?:\/\//.test(from) ? linesOfService(from) : linesOfFile(from);
  const { tables, ...counts } = await writeWholeLog(database, async (log) => ({
    ...(await put(log, lines)),
    tables: await log.eraseBytes(),
  }));
  printMembers(isJson, counts);
  if (tables.length > 0)
    printNotice(isJson, `Rows are gone, and their bytes are left in files: VACUUM FULL ${tables.join(', ')};`);
}

/** A backup may be of an earlier release. */
async function migrate(path: string): Promise<void> {
  const { openReader } = await import('../log/sqlite/reader.ts');
  const { migrateDatabase } = await import('../log/sqlite/database-file.ts');
  openReader(path).close();
  await migrateDatabase(path);
}

async function* linesOfFile(path: string): AsyncGenerator<Uint8Array> {
  for await (const { bytes } of splitLines(createReadStream(path), READ_LIMITS)) yield bytes;
}

/** The stubs have the numbers 1, 2, 3 …, and a page has those after a number. */
async function* linesOfService(url: string): AsyncGenerator<Uint8Array> {
  for (let after = 0; ; ) {
    const before = after;
    const response = await openResponse(fetch, `${url}?after=${after}`, {}, { signal: undefined });
    if (response.status !== 200) throw new CommandError('failure', `${url} responded with ${response.status}`);
    for await (const { bytes } of response.lines(READ_LIMITS)) {
      after++;
      yield bytes;
    }
    if (after === before) return;
  }
}
