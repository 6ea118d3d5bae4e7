// Checks the file of the signing keys, and whether the log extends its published checkpoint.

import { ConfigError } from '../../config.ts';
import { StreamDamaged } from '../../log/damage.ts';
import { EXIT_FAILURE } from '../../process/exit.ts';
import { PublishedHistory } from '../../publisher/published-history.ts';
import { TreeDamaged } from '../../publisher/publisher.ts';
import { messageOf } from '../../vocabulary/errors.ts';
import { checkpointCopyOf, findKeys, keyFileOf } from '../key-files.ts';
import type { Check } from './check.ts';
import { findLog } from './database.ts';
import { configurationFindings, ok, problem, warning } from './finding.ts';

/** A start creates a missing file, but not in production or for a log that has keys. */
export const checkKeys: Check = async (state) => {
  const { config, isLogReadable, isRunning: isInUse } = state;
  if (!isLogReadable) return [];
  // Another node may have created the log and its keys in the meantime.
  if (state.log === undefined && config.SERVICE_KEY_FILE !== undefined) {
    const again = await findLog(config, { isInUse }).catch(() => undefined);
    state.log = again?.log;
  }
  const { log } = state;
  try {
    const keys = findKeys(config, log);
    const file = keyFileOf(config, log?.logId);
    if (keys !== undefined) return [ok('keys', `${file} holds the keys of log ${keys.logId}`)];
    return [ok('keys', file === undefined ? 'in memory' : `${file} not found: the start creates it`)];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return configurationFindings(error, 'keys');
  }
};

/** Requires that the log extends the last published checkpoint that this node knows. */
export const checkPublished: Check = async ({ config, log }) => {
  if (log === undefined) return [];
  const { logId } = log;
  try {
    const keys = findKeys(config, log);
    if (keys === undefined) return [];
    const path = checkpointCopyOf(config, logId);
    const history = new PublishedHistory({ logId, path, keys: () => keys.all('checkpoints') });
    await log.withTree((tree) => history.prove(tree));
    return [ok('keys', 'the log extends its published checkpoint')];
  } catch (error) {
    // checkKeys has reported the error.
    if (error instanceof ConfigError) return [];
    // A damaged log is still the same log, and the rest of it is served.
    if (error instanceof TreeDamaged || error instanceof StreamDamaged) return [warning('keys', error.message)];
    return [problem('keys', messageOf(error), { exitCode: EXIT_FAILURE })];
  }
};
