// Commands that edit a service's lists, which the service rereads when they change, and that reset a log's clock.
import { readConfig } from '../config.ts';
import { parseDid } from '../crypto/did-key.ts';
import { editAccessList } from '../http/access-list.ts';
import { describeWaiting } from '../log/clock-reset.ts';
import { ALICE } from '../moves/samples.ts';
import { toTimestamp } from '../vocabulary/values.ts';
import type { CommandSpec, Input } from './command.ts';
import { CommandError, members, print, printMembers, printNotice } from './output.ts';
import { withholdCommand } from './withhold-command.ts';

export const adminCommands: readonly CommandSpec[] = [
  toSpec('ban', 'Bans an agent from registering, creating and joining; it may finish its chambers', {
    variable: 'BAN_LIST_FILE',
    isListed: true,
  }),
  toSpec('unban', "Lifts an agent's ban", { variable: 'BAN_LIST_FILE', isListed: false }),
  toSpec('allow', 'Adds an agent to the allow-list: only agents on it may register, create and join', {
    variable: 'ALLOW_LIST_FILE',
    isListed: true,
  }),
  toSpec('disallow', 'Removes an agent from the allow-list', { variable: 'ALLOW_LIST_FILE', isListed: false }),
  withholdCommand,
  {
    name: 'admin reset-clock',
    summary: "Resets a log's clock to the current time after a clock was wrong, while no service runs on the log",
    args: {
      '[database]': 'the file or postgres:// URL (default: DATABASE_URL, DATABASE_PATH or data/chambers.db)',
    },
    examples: ['admin reset-clock'],
    run: resetLogClock,
  },
];

async function resetLogClock({ args: [named], isJson }: Input): Promise<void> {
  const { DATABASE_URL, DATABASE_PATH } = readConfig(process.env);
  const database = named ?? DATABASE_URL ?? DATABASE_PATH;
  const { writeWholeLog } = await import('../log/open-log.ts');
  const { resetClock } = await import('../log/sql/maintenance.ts');
  const { from, waiting } = await writeWholeLog(database, (log) => resetClock(log));
  const streams = waiting.map(({ stream, until }) => ({ stream, until: toTimestamp(until) }));
  const reset = { database, from: toTimestamp(from), waiting: streams };
  const lines = waiting.map((each) => `waits: ${describeWaiting(each)}`);
  print(isJson, reset, [...members({ ...reset, waiting: `${waiting.length} chambers and agents` }), ...lines]);
  printNotice(isJson, 'Phases that ended only because the clock was wrong are open again once the service starts.');
}

interface Edit {
  readonly variable: 'ALLOW_LIST_FILE' | 'BAN_LIST_FILE';
  readonly isListed: boolean;
}

function toSpec(name: string, summary: string, { variable, isListed }: Edit): CommandSpec {
  return {
    name: `admin ${name}`,
    summary,
    args: { '<did>': 'the agent, e.g. did:key:z6Mk…' },
    options: { '--file <file>': `the list (default: ${variable})` },
    examples: [`admin ${name} ${ALICE}`],
    run: async ({ args: [did = ''], options: { file: named }, isJson }) => {
      if (parseDid(did) === undefined) {
        throw new CommandError('usage', `“${did}” is not a did:key of an Ed25519 key`);
      }
      const file = named ?? readConfig(process.env)[variable];
      if (file === undefined) throw new CommandError('usage', `no list to edit: set ${variable} or use --file`);
      const changed = await editAccessList(file, did, isListed);
      printMembers(isJson, { did, file, listed: isListed, changed });
    },
  };
}
