import { createReadStream } from 'node:fs';
import { isPostgres } from '../log/postgres/database-url.ts';
import { READ_LIMITS } from '../reading/limits.ts';
import { splitLines } from '../reading/lines.ts';
import { openResponse } from '../reading/response.ts';
import { messageOf } from '../vocabulary/errors.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, printMembers, printNotice } from './output.ts';

export const withholdInCommand: CommandSpec = {
  name: 'withhold-in',
  summary:
    'Erases the texts that a service has withheld from a backup or another copy of its log, while no service uses the copy',
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
  const { withholdIn: applyStubs } = await import('../log/sql/withhold-in.ts');
  if (!isPostgres(database)) await migrate(database);
  const lines = /^https?:\/\//.test(from) ? linesOfService(from) : linesOfFile(from);
  const { tables, ...counts } = await writeWholeLog(database, async (log) => ({
    ...(await applyStubs(log, lines)),
    tables: await log.eraseBytes(),
  }));
  printMembers(isJson, counts);
  if (tables.length > 0)
    printNotice(
      isJson,
      `The rows are gone, but their bytes remain in the database's files until you run: VACUUM FULL ${tables.join(', ')};`,
    );
}

/** Migrates a backup that an earlier release made. */
async function migrate(path: string): Promise<void> {
  const { openReader } = await import('../log/sqlite/reader.ts');
  const { migrateDatabase } = await import('../log/sqlite/database-file.ts');
  openReader(path).close();
  await migrateDatabase(path);
}

async function* linesOfFile(path: string): AsyncGenerator<Uint8Array> {
  for await (const { bytes } of splitLines(createReadStream(path), READ_LIMITS)) yield bytes;
}

async function* linesOfService(url: string): AsyncGenerator<Uint8Array> {
  try {
    yield* linesOfPages(url);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { cause = error } = error as Error;
    throw new CommandError('unreachable', `no complete response from ${url}: ${messageOf(cause)}`);
  }
}

/** Stubs are numbered 1, 2, 3 …; a page has the stubs after a given number. */
async function* linesOfPages(url: string): AsyncGenerator<Uint8Array> {
  for (let after = 0; ; ) {
    const before = after;
    const response = await openResponse(fetch, `${url}?after=${after}`, {}, { signal: undefined });
    if (response.status !== 200) {
      const kind = response.status >= 500 ? 'unreachable' : 'failure';
      throw new CommandError(kind, `${url} responded with ${response.status}`);
    }
    for await (const { bytes } of response.lines(READ_LIMITS)) {
      after++;
      yield bytes;
    }
    if (after === before) return;
  }
}
