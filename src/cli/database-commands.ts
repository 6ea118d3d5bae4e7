// Commands about the database of a service, on the machine where it is.
import { readConfig } from '../config.ts';
import { paint, plain } from '../terminal.ts';
import type { ArgumentSpec, Command, Input } from './command.ts';
import { EXIT } from './failure.ts';
import { members, print } from './print.ts';

const DATABASE_ARGUMENT: ArgumentSpec = {
  name: 'DATABASE',
  help: 'the file; DATABASE_PATH or data/chambers.db without it',
  arity: 'optional',
};

export const databaseCommands: readonly Command[] = [
  {
    name: 'fsck',
    summary: 'Checks a database: every line, what links them, every derived row',
    args: [DATABASE_ARGUMENT],
    options: {
      'repair-tail': {
        help: 'first save and remove rows that another program appended, while the service is stopped',
      },
    },
    examples: ['fsck', 'fsck data/chambers.db --json', 'fsck --repair-tail'],
    run: fsck,
  },
  {
    name: 'rebuild',
    summary: 'Makes the derived tables of a database anew from its log, while the service is stopped',
    args: [DATABASE_ARGUMENT],
    options: {},
    examples: ['rebuild'],
    run: async ({ args, isJson }) => {
      const { rebuildDatabase } = await import('../log/sqlite/repair.ts');
      const summary = rebuildDatabase(databaseOf(args[0]));
      print(isJson, summary, members(summary));
    },
  },
  {
    name: 'backup',
    summary: 'Copies a database whole while the service goes on',
    args: [{ name: 'TARGET', help: 'the file to write, which must not exist' }, DATABASE_ARGUMENT],
    options: {},
    examples: ['backup /mnt/backup/chambers.db'],
    run: async ({ args: [target = '', database], isJson }) => {
      const { backupDatabase } = await import('../log/sqlite/backup.ts');
      const summary = await backupDatabase(databaseOf(database), target);
      print(isJson, summary, members(summary));
    },
  },
];

async function fsck({ args, options, isJson }: Input): Promise<number> {
  const { fsckDatabase } = await import('../log/sqlite/fsck.ts');
  const database = databaseOf(args[0]);
  const repair =
    options['repair-tail'] === undefined ? {} : (await import('../log/sqlite/repair.ts')).repairTail(database);
  const faults: object[] = [];
  const summary = fsckDatabase(database, (fault) => {
    faults.push(fault);
    const { stream, eventId, problem } = fault;
    const place = stream === null ? 'database' : `${stream}, event ${eventId}`;
    if (!isJson) console.log(`${paint('red', plain(place))}: ${plain(problem)}`);
  });
  const result = { ...summary, ...repair };
  print(isJson, { ...result, found: faults }, members(result));
  return summary.faults === 0 ? EXIT.ok : EXIT.verification;
}

function databaseOf(path: string | undefined): string {
  return path ?? readConfig(process.env).DATABASE_PATH;
}
