// Checks everything that a service depends on before it starts: each finding names the variable that fixes it.
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { configuredChain } from './chain.ts';
import { type Config, ConfigError, readConfig, VARIABLES } from './config.ts';
import { openReader } from './log/sqlite/stored-events.ts';
import { readHead } from './relayer/chain-client.ts';
import { probeChain } from './relayer/identity.ts';
import { openRpc } from './relayer/rpc.ts';

export interface Finding {
  readonly subject: 'configuration' | 'flags' | 'disk' | 'clock' | 'chain';
  /** A `problem` stops the service or defeats its purpose; a `warning` may pass or may be intended. */
  readonly level: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  /** The variable to set, if that fixes it. */
  readonly variable: string | null;
}

const FREE_BYTES_MIN = 100_000_000;
const FREE_BYTES_ENOUGH = 1_000_000_000;

/** The findings on a service with this environment; if its configuration is invalid, only that. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  try {
    const config = readConfig(env);
    const rest = await Promise.all([examineDisk(config), examineClock(config), examineChain(config)]);
    return [ok('configuration', 'every variable is valid'), ...examineFlags(config), ...rest.flat()];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((detail) => problem('configuration', detail, /^[A-Z_]+(?=:)/.exec(detail)?.[0] ?? ''));
  }
}

function examineFlags(config: Config): readonly Finding[] {
  const isLocal = ['127.0.0.1', 'localhost', '::1'].includes(config.HOST);
  const isProduction = config.NODE_ENV === 'production';
  const warnings: readonly (readonly [boolean, string, string])[] = [
    [config.DEV_ALLOW_UNSIGNED, 'DEV_ALLOW_UNSIGNED', 'anybody may act as any agent: unset it outside development'],
    [
      !isLocal && !isProduction,
      'NODE_ENV',
      `the service listens on ${config.HOST} without the checks of NODE_ENV=production`,
    ],
    [isProduction && config.CHAIN === 'none', 'CHAIN', 'without a chain, no chamber is ever committed'],
    [config.DATABASE_PATH === ':memory:', 'DATABASE_PATH', 'the log is in memory: it is lost when the process ends'],
  ];
  const found = warnings.filter(([isSo]) => isSo).map(([, variable, detail]) => warning('flags', detail, variable));
  return found.length > 0 ? found : [ok('flags', 'nothing unsafe is set')];
}

async function examineDisk({ DATABASE_PATH }: Config): Promise<readonly Finding[]> {
  if (DATABASE_PATH === ':memory:') return [];
  try {
    const folder = await folderOf(DATABASE_PATH);
    const database = await stat(DATABASE_PATH).catch(() => undefined);
    if (database?.isFile() === false) throw new Error('not a regular file');
    if (database !== undefined) await access(DATABASE_PATH, constants.W_OK);
    await access(folder, constants.W_OK);
    const { bavail, bsize } = await statfs(folder);
    const freeBytes = bavail * bsize;
    const detail = `${(freeBytes / 1e9).toFixed(1)} GB free in ${folder}`;
    if (freeBytes < FREE_BYTES_MIN) return [problem('disk', detail, 'DATABASE_PATH')];
    return [freeBytes < FREE_BYTES_ENOUGH ? warning('disk', detail, 'DATABASE_PATH') : ok('disk', detail)];
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [problem('disk', `${DATABASE_PATH} cannot be written to: ${reason}`, 'DATABASE_PATH')];
  }
}

/** The folder of the database. The service creates the default one, and no other. */
async function folderOf(path: string): Promise<string> {
  const folder = dirname(path);
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined && path === VARIABLES.DATABASE_PATH.fallback) return '.';
  if (found?.isDirectory() !== true) throw new Error(`folder ${folder} not found`);
  return folder;
}

/** Compares the clock with what can't be in the future: the log's last event and the chain's newest block. */
async function examineClock(config: Config): Promise<readonly Finding[]> {
  const skewMillis = config.SIGNATURE_MAX_SKEW_SECONDS * 1000;
  const [lastEventAt, blockAt] = [lastEventTime(config.DATABASE_PATH), await lastBlockTime(config)];
  const now = Date.now();
  const behind = (at: number) => `${Math.round((at - now) / 1000)} s ahead of this clock`;
  if (lastEventAt > now) return [problem('clock', `the log's last event is ${behind(lastEventAt)}`, null)];
  if (blockAt > now + skewMillis) return [problem('clock', `the chain's newest block is ${behind(blockAt)}`, null)];
  return [ok('clock', `${new Date(now).toISOString()}, not behind the log or the chain`)];
}

function lastEventTime(databasePath: string): number {
  try {
    const db = openReader(databasePath);
    try {
      const line = db.prepare<[], string>('SELECT line FROM events ORDER BY position DESC LIMIT 1').pluck().get();
      return line === undefined ? 0 : Date.parse((JSON.parse(line) as { readonly ts: string }).ts);
    } finally {
      db.close();
    }
  } catch {
    // No database yet, or an unreadable one, which fsck reports.
    return 0;
  }
}

async function lastBlockTime({ CHAIN, RPC_URL }: Config): Promise<number> {
  if (CHAIN === 'none' || RPC_URL === undefined) return 0;
  const rpc = openRpc(RPC_URL, PROBE_MILLIS);
  try {
    return (await readHead(rpc)).at;
  } catch {
    // An unreachable RPC is reported by examineChain.
    return 0;
  } finally {
    rpc.close();
  }
}

const PROBE_MILLIS = 3_000;

async function examineChain(config: Config): Promise<readonly Finding[]> {
  if (config.CHAIN === 'none') return [ok('chain', 'none: chambers stay in ALLOCATE_REVEAL')];
  if (config.RPC_URL === undefined)
    return [ok('chain', 'a development chain, started with the service; RPC_URL names another chain')];
  const { isReachable, chainId, relayer, balance, mismatches, warnings } = await probeChain(
    configuredChain(config, config.RPC_URL),
  );
  const problems = mismatches.map((mismatch) => problem('chain', mismatch.problem, mismatch.variable));
  const passing = warnings.map((mismatch) => warning('chain', mismatch.problem, mismatch.variable));
  if (!isReachable || problems.length > 0 || passing.length > 0) return [...problems, ...passing];
  return [ok('chain', `chain ${chainId}, contracts in place, the relayer ${relayer} has ${balance} wei`)];
}

function ok(subject: Finding['subject'], detail: string): Finding {
  return { subject, level: 'ok', detail, variable: null };
}

function warning(subject: Finding['subject'], detail: string, variable: string): Finding {
  return { subject, level: 'warning', detail, variable };
}

function problem(subject: Finding['subject'], detail: string, variable: string | null): Finding {
  return { subject, level: 'problem', detail, variable };
}
