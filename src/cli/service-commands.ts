// Commands for operators on the service's machine, which run the service, check it and maintain its database.
import { readConfig } from '../config.ts';
import { isPostgres } from '../log/postgres/database-url.ts';
import type { Fault } from '../log/stored-stream.ts';
import { paint } from '../process/terminal.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, EXIT, members, print, printMembers, printNotice, table } from './output.ts';
import { toInteger } from './values.ts';
import { withholdInCommand } from './withhold-in-command.ts';

const FILE_ARGUMENT = { '[database]': 'the file (default: DATABASE_PATH or data/chambers.db)' } as const;
const DATABASE_ARGUMENT = {
  '[database]': 'the file or postgres:// URL (default: DATABASE_URL, DATABASE_PATH or data/chambers.db)',
} as const;

export const serviceCommands: readonly CommandSpec[] = [
  {
    name: 'start',
    summary: 'Runs the service, configured by the environment (PORT, DATABASE_PATH, RPC_URL …; see src/README.md)',
    examples: ['start', 'doctor  # checks the configuration first'],
    run: async () => {
      await import('../main.ts');
    },
  },
  {
    name: 'demo',
    summary:
      'Plays a chamber with five agents on a temporary service, until its root is on a chain, in under 15 seconds',
    options: {
      '--watch': "keep the service running, and print the address of the chamber's page",
      '--nodes <count>':
        'run this many services on one PostgreSQL server (DATABASE_URL, or a temporary one) and kill one (default: 1)',
    },
    examples: ['demo', 'demo --watch', 'demo --nodes=3'],
    run: async ({ options: { watch, nodes = '1' } }) => {
      const { demoMain } = await import('./demo.ts');
      return demoMain(watch !== undefined, toInteger('--nodes', nodes));
    },
  },
  {
    name: 'doctor',
    summary:
      'Checks whether the service can start here and names the variable to fix; with a URL, checks a running service',
    args: {
      '[url]':
        'the base URL of a running service, as its clients use it: checks that service instead of the settings here',
    },
    examples: ['doctor', 'doctor https://chambers.example.org', 'doctor --json'],
    run: doctor,
  },
  {
    name: 'fsck',
    summary: 'Checks a database: every line, the hash chains, every derived row, the published tree',
    args: DATABASE_ARGUMENT,
    options: {
      '--repair-tail': 'first save, then remove, rows that another program appended, while the service is stopped',
    },
    examples: ['fsck', 'fsck data/chambers.db --json', 'fsck --repair-tail'],
    run: checkLog,
  },
  {
    name: 'rebuild',
    summary: "Rebuilds a database's derived tables and tiles from its log, while the service is stopped",
    args: DATABASE_ARGUMENT,
    examples: ['rebuild'],
    run: async ({ args, isJson }) => {
      const database = databaseOf(args[0]);
      const { writeWholeLog } = await import('../log/open-log.ts');
      const { rebuild } = await import('../log/sql/maintenance.ts');
      printMembers(isJson, await writeWholeLog(database, rebuild));
    },
  },
  {
    name: 'backup',
    summary: 'Copies a whole database while the service is running',
    args: { '<target>': 'the file to create', ...FILE_ARGUMENT },
    examples: ['backup /mnt/backup/chambers.db'],
    run: async ({ args: [target = '', database], isJson }) => {
      const file = fileOf(
        database,
        "back up PostgreSQL with pg_dump or the provider's backups, and run renew-id after a restore",
      );
      const { backupDatabase } = await import('../log/sqlite/backup.ts');
      printMembers(isJson, await backupDatabase(file, target));
    },
  },
  {
    name: 'renew-id',
    summary: 'Sets a new logId in a copy that chambers backup did not make, while no service runs on it',
    args: DATABASE_ARGUMENT,
    examples: ['renew-id', 'renew-id postgres://chambers@db.internal/restored'],
    run: async ({ args, isJson }) => {
      const database = databaseOf(args[0]);
      const { newLogId } = await import('../log/log-id.ts');
      const { writeWholeLog } = await import('../log/open-log.ts');
      const { renewLog } = await import('../log/sql/maintenance.ts');
      printMembers(isJson, await writeWholeLog(database, (log) => renewLog(log, { logId: newLogId() })));
    },
  },
  {
    name: 'copy',
    summary: 'Copies a log to another store with the same lines and logId; the source then accepts no more events',
    args: {
      '<from>': 'the SQLite file or postgres:// URL of the log; no service may run on it',
      '<to>': 'the file to create, or the URL of an empty database',
    },
    examples: [
      'copy data/chambers.db postgres://chambers@db.internal/chambers  # with the password in PGPASSWORD',
      'copy postgres://chambers@db.internal/chambers data/chambers.db',
    ],
    run: async ({ args: [from = '', to = ''], isJson }) => {
      const { copyLog } = await import('../log/open-log.ts');
      printMembers(isJson, await copyLog(from, to));
    },
  },
  {
    name: 'erase',
    summary: "Removes an agent's personal data from a database, while the service is stopped; needs as much free disk",
    args: { '<did>': 'the agent, e.g. did:key:z6Mk…', ...FILE_ARGUMENT },
    examples: ['erase did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw'],
    run: async ({ args: [did = '', database], isJson }) => {
      const file = fileOf(database, 'for PostgreSQL, deploy/README.md has the statements');
      const { eraseAgent } = await import('../log/sqlite/erase.ts');
      printMembers(isJson, eraseAgent(file, did));
      printNotice(isJson, 'Backups may still hold the data: erase the agent from each of them too, or delete them.');
    },
  },
  withholdInCommand,
];

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const;

async function doctor({ args: [url], isJson }: Input): Promise<number> {
  const { examine, exitCodeOf } = await import('../doctor/doctor.ts');
  const { examineService } = await import('../doctor/running-service.ts');
  const findings = await (url === undefined ? examine(process.env) : examineService(url, process.env));
  const isHealthy = findings.every(({ level }) => level !== 'problem');
  const rows = findings.map(({ subject, level, variable, detail }) => [subject, level, variable, detail]);
  const [header = '', ...lines] = table(['SUBJECT', 'LEVEL', 'VARIABLE', 'FINDING'], rows);
  const coloured = lines.map((line, row) => paint(COLOURS[findings[row]?.level ?? 'ok'], line));
  print(isJson, { ok: isHealthy, findings }, [header, ...coloured]);
  return exitCodeOf(findings);
}

async function checkLog({ args, options, isJson }: Input): Promise<number> {
  const { readWholeLog } = await import('../log/open-log.ts');
  const { fsck } = await import('../log/sql/fsck.ts');
  const { repairTail } = await import('../log/sqlite/repair.ts');
  const database = databaseOf(args[0]);
  const isRepair = options['repair-tail'] !== undefined;
  const repair = isRepair ? await repairTail(fileOf(database, '--repair-tail is for SQLite files')) : {};
  const faults: object[] = [];
  const report = (fault: Fault) => {
    faults.push(fault);
    const { stream, eventId, problem } = fault;
    const place = stream === null ? 'database' : `${stream}, event ${eventId}`;
    if (!isJson) console.log(`${paint('red', visibleLine(place))}: ${visibleLine(problem)}`);
  };
  const summary = await readWholeLog(database, (log) => fsck(log, report));
  const file = isPostgres(database) ? {} : { file: database };
  const result = { ...file, ...summary, ...repair };
  print(isJson, { ...result, found: faults }, members(result));
  return summary.faults === 0 ? EXIT.ok : EXIT.verification;
}

function databaseOf(named: string | undefined): string {
  if (named !== undefined) return named;
  const { DATABASE_URL, DATABASE_PATH } = readConfig(process.env);
  return DATABASE_URL ?? DATABASE_PATH;
}

/** `instead` is the advice for PostgreSQL. */
function fileOf(named: string | undefined, instead: string): string {
  const database = databaseOf(named);
  if (!isPostgres(database)) return database;
  throw new CommandError('usage', `this is for SQLite files: ${instead}`);
}
