// `chambers new-log`: continues a database under a new logId after a restore that lost published lines. The old log's last checkpoint stays
// public and its keys keep signing, so that the lines that others kept of the old log can still be proven.
import { readConfig } from '../config.ts';
import { copyKeyFileForLog, defaultKeyFile, readAnyKeyFile } from '../keys/key-file.ts';
import { COPIED_FROM } from '../log/existing-log.ts';
import { newLogId, SERVICE_KEYS, toKeyIds } from '../log/log-id.ts';
import { readWholeLog, writeWholeLog } from '../log/open-log.ts';
import type { FormerLog } from '../log/published-tree.ts';
import { renewLog } from '../log/sql/maintenance.ts';
import { readMeta } from '../log/sql/whole-log.ts';
import { checkpointCopyPath, openCopy, readCheckpointCopy } from '../publisher/checkpoint-copy.ts';
import { requireRecorded } from '../service/key-files.ts';
import type { CommandSpec } from './command.ts';
import { CommandError, printMembers, printNotice } from './output.ts';

export const newLogCommand: CommandSpec = {
  name: 'new-log',
  summary: 'Continues a restored database as a new log, while no service runs on it, and keeps the last checkpoint',
  options: { '--key-file <file>': 'the key file (default: SERVICE_KEY_FILE, or the one next to the database)' },
  examples: ['new-log', 'new-log --key-file=/etc/chambers/keys.json'],
  run: async ({ options: { 'key-file': named }, isJson }) => {
    const { DATABASE_URL, DATABASE_PATH, SERVICE_KEY_FILE } = readConfig(process.env);
    const database = DATABASE_URL ?? DATABASE_PATH;
    const { logId, copiedFrom, keyIds, isEmpty } = await readState(database);
    if (isEmpty) throw new CommandError('usage', 'the database has no lines: put a copy of the log in its place first');
    // A backup has its own logId, but the keys of the log that it is a copy of.
    const defaults = [logId, copiedFrom].map((id) => defaultKeyFile(DATABASE_PATH, id));
    const [ofLog = '', ofSource = ''] = defaults;
    const configured = named ?? SERVICE_KEY_FILE;
    const before = configured ?? (readAnyKeyFile(ofLog) === undefined && readAnyKeyFile(ofSource) ? ofSource : ofLog);
    const keys = readAnyKeyFile(before);
    if (keys === undefined)
      throw new CommandError(
        'usage',
        `${before} not found: name the key file with --key-file, or, if it is lost, run chambers admin new-keys --lost instead of new-log`,
      );
    requireRecorded(keys, keyIds, before);
    const copy = checkpointCopyPath(before);
    const note = readCheckpointCopy(copy);
    const opened = note === undefined ? undefined : openCopy(note, keys.all('checkpoints'));
    if (note !== undefined && opened === undefined) {
      throw new CommandError('usage', `${copy} is not a checkpoint that the keys in ${before} have signed`);
    }
    const former: FormerLog | undefined = opened && { logId: opened.logId, size: opened.size, note: note as string };
    const renewedId = newLogId();
    const keyFile = SERVICE_KEY_FILE ?? defaultKeyFile(DATABASE_PATH, renewedId);
    // The key file is written first: otherwise a crash could leave the log with the new id but without keys.
    const prepare = () => copyKeyFileForLog(before, keyFile, renewedId);
    const renewed = await writeWholeLog(database, (log) => renewLog(log, { logId: renewedId, former, prepare }));
    const published = { formerLog: former?.logId ?? null, formerSize: former?.size ?? null };
    printMembers(isJson, { ...renewed, keyFile, ...published });
    printNotice(
      isJson,
      'With several nodes, copy the key file to each node. Consumers of the old log get 409 and start again.',
    );
  },
};

function readState(database: string) {
  return readWholeLog(database, async (log) => {
    const lines = await log.query('SELECT 1 FROM events LIMIT 1');
    const [logId = '', copiedFrom = ''] = [await readMeta(log, 'log_id'), await readMeta(log, COPIED_FROM)];
    const keyIds = toKeyIds(await readMeta(log, SERVICE_KEYS));
    return { logId, copiedFrom, keyIds, isEmpty: lines.length === 0 };
  });
}
