// `chambers admin withhold`: lists events whose texts the service erases, and prints the operator's remaining steps.
import { type Config, readConfig } from '../config.ts';
import { describeDatabase } from '../log/postgres/database-url.ts';
import { findLog } from '../service/checks/database.ts';
import { EVENTS_LIMIT } from '../vocabulary/endpoint.ts';
import { WITHHOLD_REASONS } from '../vocabulary/withheld.ts';
import { addToWithholdList, isReason, type NamedEvent, nameOf, parseStream, toText } from '../withholding/list.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, members, print } from './output.ts';
import { toInteger } from './values.ts';

export const withholdCommand: CommandSpec = {
  name: 'admin withhold',
  summary:
    'Erases the texts of events permanently: the service replaces their lines with signed stubs, and proofs stay valid',
  args: { '<stream>': 'the chamber, or the DID of an account', '<event...>': 'the events, e.g. 17 21' },
  required: { '--reason <reason>': `one of ${WITHHOLD_REASONS.join(', ')}` },
  options: { '--file <file>': 'the list (default: WITHHOLD_FILE)' },
  examples: ['admin withhold 3 17 21 --reason=personal-data', 'admin withhold did:key:z6Mk… 2 --reason=law'],
  run: withhold,
};

const JOINS_NOTE =
  "The list of stubs (below) also names the agent's joins that were withheld with it: purge the same addresses of their chambers.";

async function withhold({ args: [name = '', ...ids], options, isJson }: Input): Promise<void> {
  const stream = parseStream(name);
  if (stream === undefined) {
    throw new CommandError('usage', `“${name}” is neither a chamber nor a did:key of an Ed25519 key`);
  }
  const { reason = '', file: named } = options;
  if (!isReason(reason)) throw new CommandError('usage', `--reason must be one of ${WITHHOLD_REASONS.join(', ')}`);
  const config = readConfig(process.env);
  const file = named ?? config.WITHHOLD_FILE;
  if (file === undefined) throw new CommandError('usage', 'no list to edit: set WITHHOLD_FILE or use --file');
  const events = ids.map((id) => ({ stream, eventId: toInteger('an event', id) }));
  const { added, listed } = await addToWithholdList(file, events, reason);
  const steps = await remainingSteps(config, events, await logIdOf(config));
  const { purge, ...others } = steps;
  const commands = Object.values(others).flat();
  const already = listed.map(
    (entry) => `${nameOf(entry)} is already listed with the reason ${entry.reason}, which stays`,
  );
  print(isJson, { file, reason, added, listed: listed.map(toText), ...steps }, [
    ...members({ file, reason, added: added.join(' ') || 'none' }),
    ...already,
    '',
    'If WITHHOLD_FILE names this list, the service reads it within seconds. Its log says "text withheld" for each event whose',
    'text is erased, or "alert raised" for an entry that it can\'t apply. Your remaining steps:',
    '',
    'Purge these from your caches, and the corresponding addresses of every other event that the stubs name:',
    ...purge.map((url) => `  ${url}`),
    "Other operators' caches may keep them for a day.",
    ...(typeof stream === 'string' ? ['', JOINS_NOTE] : []),
    '',
    'Then, once the stubs are there:',
    ...commands.map((command) => `  ${command}`),
    '',
    "Copies of WAL files, standbys, disk snapshots and other operators' mirrors keep the texts until they are removed there.",
  ]);
}

/** Returns undefined if there is no log, or if this machine can't read it. */
async function logIdOf(config: Config): Promise<string | undefined> {
  const found = await findLog(config, { isInUse: true }).catch(() => undefined);
  return found?.log?.logId;
}

interface Steps {
  /** Addresses of responses that caches may hold. */
  readonly purge: readonly string[];
  readonly stubs: readonly string[];
  readonly backups: readonly string[];
  /** Statements for PostgreSQL, which keeps old rows in its files. */
  readonly database: readonly string[];
}

async function remainingSteps(
  { PUBLIC_URL, DATABASE_URL }: Config,
  events: readonly NamedEvent[],
  logId = '<logId>',
): Promise<Steps> {
  const bases = PUBLIC_URL.length === 0 ? [''] : PUBLIC_URL;
  const paths = [...new Set(events.flatMap((event) => cachedPaths(event, logId)))];
  const everywhere = (path: string) => bases.map((base) => base + path);
  return {
    purge: paths.flatMap(everywhere),
    stubs: everywhere(`/log/${logId}/withheld`),
    backups: everywhere(`/log/${logId}/withheld`)
      .slice(0, 1)
      .map((url) => `chambers withhold-in BACKUP --from=${url}  # for each backup`),
    database: DATABASE_URL === undefined ? [] : [await vacuumCommand(DATABASE_URL)],
  };
}

/** Returns a command that locks each table while PostgreSQL rewrites it. */
async function vacuumCommand(url: string): Promise<string> {
  const { TABLES_WITH_TEXTS } = await import('../log/postgres/withholding.ts');
  return `psql ${describeDatabase(url)} -c 'VACUUM FULL ${TABLES_WITH_TEXTS.join(', ')}'`;
}

function cachedPaths({ stream, eventId }: NamedEvent, logId: string): readonly string[] {
  if (typeof stream === 'string') return [`/agents/${stream}`, `/agents/${stream}/events`];
  const chamber = `/chambers/${stream}`;
  const limit = EVENTS_LIMIT.fallback;
  const after = Math.floor((eventId - 1) / limit) * limit;
  return [`${chamber}/events?log=${logId}&after=${after}&limit=${limit}`, `${chamber}/outcome`];
}
