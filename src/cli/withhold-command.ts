// `chambers admin withhold`: names events whose texts the service erases, and says what is left for the operator to do.
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
    'Erases the texts of events for good: the service replaces their lines by signed stubs, and proofs stay valid',
  args: { '<stream>': 'the chamber, or the DID of an account', '<event...>': 'the events, e.g. 17 21' },
  required: { '--reason <reason>': `one of ${WITHHOLD_REASONS.join(', ')}` },
  options: { '--file <file>': 'the list (default: WITHHOLD_FILE)' },
  examples: ['admin withhold 3 17 21 --reason=personal-data', 'admin withhold did:key:z6Mk… 2 --reason=law'],
  run: withhold,
};

const JOINS =
  "The list of stubs (below) also names the agent's joins that went along: purge the same addresses of their chambers.";

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
  const { added, listed } = addToWithholdList(file, events, reason);
  const steps = await stepsAfter(config, events, await logIdOf(config));
  const { purge, ...others } = steps;
  const commands = Object.values(others).flat();
  const already = listed.map(
    (entry) => `${nameOf(entry)} is already listed with the reason ${entry.reason}, which counts`,
  );
  print(isJson, { file, reason, added, listed: listed.map(toText), ...steps }, [
    ...members({ file, reason, added: added.join(' ') || 'none' }),
    ...already,
    '',
    'If WITHHOLD_FILE names this list, the service reads it within seconds. Its log says "text withheld" for each event whose',
    'text is erased, or "alert raised" for an entry that it can\'t apply. Left for you to do:',
    '',
    'Purge from your caches, with the same addresses for every event that the stubs name:',
    ...purge.map((url) => `  ${url}`),
    'Caches of others may keep them for a day.',
    ...(typeof stream === 'string' ? ['', JOINS] : []),
    '',
    'Then, once the stubs are there:',
    ...commands.map((command) => `  ${command}`),
    '',
    'Copies of WAL files, standbys, snapshots of disks and mirrors of others keep the texts until you remove them there.',
  ]);
}

/** Undefined where there is no log, or none that can be read from here. */
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

async function stepsAfter(
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
      .map((url) => `chambers withhold-in BACKUP --from=${url}  # each of them`),
    database: DATABASE_URL === undefined ? [] : [await vacuumCommand(DATABASE_URL)],
  };
}

/** Locks each table while it is rewritten. */
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
