// Checks everything that a service depends on before it starts: each finding names the variable that fixes it.
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatEther } from 'viem';
import { type Config, ConfigError, describeProblem, readConfig, VARIABLES } from './config.ts';
import { SERVICE_NAME } from './http/service.ts';
import { readAnyKeyFile, readKeyFile } from './keys/key-file.ts';
import { describeWaiting, NO_RESET, waitingAt } from './log/clock-reset.ts';
import { HAD_KEYS } from './log/log-id.ts';
import { MOVED_TO, requireNotMoved } from './log/moved.ts';
import { readClock, readReset } from './log/sqlite/clock.ts';
import { lastChambers, readLog, readMeta } from './log/sqlite/reader.ts';
import { READ_LIMITS } from './reading/limits.ts';
import { openResponse } from './reading/response.ts';
import { tlsHint } from './reading/tls-hint.ts';
import { anvilBinary } from './relayer/anvil.ts';
import { readHead } from './relayer/chain-client.ts';
import type { RelayerConfig } from './relayer/context.ts';
import { committedIds, probeChain } from './relayer/identity.ts';
import { openRpc } from './relayer/rpc.ts';
import { openAccount } from './relayer/transactions.ts';
import { configuredChain } from './service/chain.ts';
import { readLists, readWitnesses } from './service/compose.ts';

export interface Finding {
  readonly subject: 'configuration' | 'flags' | 'keys' | 'disk' | 'clock' | 'chain' | 'service';
  /** A `problem` stops the service or defeats its purpose; a `warning` may pass or may be intended. */
  readonly level: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  /** The variable to set, if that fixes it. */
  readonly variable: string | null;
}

/** How many ids after the last one, and of open chambers, are looked up in the registry of a restored log. */
const IDS_PROBED = 100;
const FREE_BYTES_MIN = 100_000_000;
const FREE_BYTES_ENOUGH = 1_000_000_000;
const PROBE_MILLIS = 3_000;
/** The default of SIGNATURE_MAX_SKEW_SECONDS. */
const SERVICE_CLOCK_SECONDS_MAX = 60;

const finding =
  (level: Finding['level']) =>
  (subject: Finding['subject'], detail: string, variable: string | null = null): Finding => ({
    subject,
    level,
    detail,
    variable,
  });
const [ok, warning, problem] = [finding('ok'), finding('warning'), finding('problem')];

/** The findings for a service with this environment; if its configuration is invalid, only those about it. */
export async function examine(env: Readonly<Record<string, string | undefined>>): Promise<readonly Finding[]> {
  try {
    const config = readConfig(env);
    const rest = await Promise.all([examineDisk(config), examineClock(config), examineChain(config)]);
    return [...examineLists(config), ...examineFlags(config), ...examineKeys(config), ...rest.flat()];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((each) => problem('configuration', describeProblem(each), each.variable));
  }
}

function examineFlags(config: Config): readonly Finding[] {
  const isLocal = ['127.0.0.1', 'localhost', '::1'].includes(config.HOST);
  const isProduction = config.NODE_ENV === 'production';
  const unchecked = `the service listens on ${config.HOST} without the checks of NODE_ENV=production`;
  const isUnsafe: readonly (readonly [boolean, string, string])[] = [
    [config.DEV_ALLOW_UNSIGNED, 'DEV_ALLOW_UNSIGNED', 'any caller may act as any agent: unset it outside development'],
    [!isLocal && !isProduction, 'NODE_ENV', unchecked],
    [isProduction && config.CHAIN === 'none', 'CHAIN', 'without a chain, no chamber is ever committed'],
    [config.DATABASE_PATH === ':memory:', 'DATABASE_PATH', 'the log is in memory: it is lost when the process ends'],
  ];
  const found = isUnsafe.filter(([isSo]) => isSo).map(([, variable, detail]) => warning('flags', detail, variable));
  return found.length > 0 ? found : [ok('flags', 'nothing unsafe is set')];
}

/** The files that a start reads whole, once every variable is valid. */
function examineLists(config: Config): readonly Finding[] {
  const found = [readLists, readWitnesses].flatMap((read) => {
    try {
      read(config);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map((each) => problem('configuration', each.problem, each.variable));
    }
  });
  return found.length > 0 ? found : [ok('configuration', 'every variable is valid')];
}

/** The service makes a missing file, but not in production, nor for a log that had keys. */
function examineKeys({ SERVICE_KEY_FILE: file, DATABASE_PATH, DATABASE_URL, NODE_ENV }: Config): readonly Finding[] {
  if (file === undefined) return [];
  try {
    // A database on a server names its log only to the service.
    const logId = DATABASE_URL === undefined ? readLog(DATABASE_PATH, (db) => readMeta(db, 'log_id')) : undefined;
    const keys = logId === undefined ? readAnyKeyFile(file) : readKeyFile(file, logId);
    if (keys !== undefined) return [ok('keys', `${file} holds the keys of log ${keys.logId}`)];
    const hadKeys = DATABASE_URL === undefined && readLog(DATABASE_PATH, (db) => readMeta(db, HAD_KEYS)) !== undefined;
    if (hadKeys) return [problem('keys', `${file} not found, and the log had keys: put it back`, 'SERVICE_KEY_FILE')];
    const isMade = NODE_ENV !== 'production';
    const found = isMade ? 'it is made at the start' : 'chambers admin new-keys makes it';
    return [(isMade ? ok : problem)('keys', `${file} not found: ${found}`, isMade ? null : 'SERVICE_KEY_FILE')];
  } catch (error) {
    return [problem('keys', (error as Error).message, 'SERVICE_KEY_FILE')];
  }
}

async function examineDisk({ DATABASE_PATH, DATABASE_URL }: Config): Promise<readonly Finding[]> {
  if (DATABASE_PATH === ':memory:') return [];
  if (DATABASE_URL !== undefined) return [await examineServer(DATABASE_URL)];
  try {
    const database = await stat(DATABASE_PATH).catch(() => undefined);
    const parent = await stat(dirname(DATABASE_PATH)).catch(() => undefined);
    // The service creates the folder of the default path, and no other.
    const isCreated = parent === undefined && DATABASE_PATH === VARIABLES.DATABASE_PATH.fallback;
    const folder = isCreated ? '.' : dirname(DATABASE_PATH);
    if (!isCreated && parent?.isDirectory() !== true) throw new Error(`folder ${folder} not found`);
    if (database?.isFile() === false) throw new Error('not a regular file');
    if (database !== undefined) await access(DATABASE_PATH, constants.W_OK);
    requireNotMoved(readLog(DATABASE_PATH, (db) => readMeta(db, MOVED_TO)));
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

const NO_STANDBY =
  'without a synchronous standby a failover may lose lines that a checkpoint covers, and no node starts on such a log again';

async function examineServer(databaseUrl: string): Promise<Finding> {
  const { probeDatabase } = await import('./log/postgres/store.ts');
  return probeDatabase(databaseUrl).then(
    ({ detail, hasSynchronousStandby }) =>
      hasSynchronousStandby ? ok('disk', detail) : warning('disk', `${detail}; ${NO_STANDBY}`, 'DATABASE_URL'),
    (error: Error) => problem('disk', error.message, 'DATABASE_URL'),
  );
}

/** Compares the clock with what can't be in the future: the log's time and the chain's newest block. */
async function examineClock(config: Config): Promise<readonly Finding[]> {
  const skewMillis = config.SIGNATURE_MAX_SKEW_SECONDS * 1000;
  const { DATABASE_URL: url, DATABASE_PATH: path } = config;
  // The time of a log in PostgreSQL is the database's.
  const { logAt = 0, reset = NO_RESET } =
    (url === undefined && readLog(path, (db) => ({ logAt: readClock(db), reset: readReset(db) }))) || {};
  const blockAt = await lastBlockTime(config);
  const now = Date.now();
  const behind = (at: number) => `${Math.round((at - now) / 1000)} s ahead of this clock`;
  if (logAt > now) return [problem('clock', `the log's time is ${behind(logAt)}: ${CLOCK_ADVICE}`)];
  if (blockAt > now + skewMillis) return [problem('clock', `the chain's newest block is ${behind(blockAt)}`)];
  const waiting = waitingAt(reset, now).map(describeWaiting);
  const named = waiting.slice(0, STREAMS_NAMED_MAX).join(', ');
  if (waiting.length > 0) return [warning('clock', `last events in the future, ${waiting.length} in all: ${named}`)];
  return [ok('clock', `${new Date(now).toISOString()}, not behind the log or the chain`)];
}

const CLOCK_ADVICE = 'set it right, or, if the log was written by a wrong one, run chambers admin reset-clock';
const STREAMS_NAMED_MAX = 10;

async function lastBlockTime({ CHAIN, RPC_URL }: Config): Promise<number> {
  if (CHAIN === 'none' || RPC_URL === undefined) return 0;
  const rpc = openRpc(RPC_URL, { timeoutMillis: PROBE_MILLIS });
  // An unreachable RPC is reported by examineChain.
  const head = await readHead(rpc).catch(() => ({ at: 0 }));
  rpc.close();
  return head.at;
}

async function examineChain(config: Config): Promise<readonly Finding[]> {
  if (config.CHAIN === 'none') return [ok('chain', 'none: chambers stay in ALLOCATE_REVEAL')];
  if (config.RPC_URL === undefined) {
    try {
      anvilBinary();
    } catch (error) {
      return [problem('chain', error instanceof Error ? error.message : String(error), 'RPC_URL')];
    }
    return [ok('chain', 'a development chain, started with the service; RPC_URL names another chain')];
  }
  let chain: RelayerConfig;
  try {
    chain = configuredChain(config, config.RPC_URL);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [problem('chain', reason, 'CONTRACTS_FILE')];
  }
  const { address } = openAccount(chain.privateKey);
  const { chainId, balance, ...report } = await probeChain(chain, address);
  const found = [
    ...report.mismatches.map((mismatch) => problem('chain', mismatch.problem, mismatch.variable)),
    ...report.warnings.map((mismatch) => warning('chain', mismatch.problem, mismatch.variable)),
  ];
  if (found.length > 0) return found;
  const taken = await examineRoots(config, chain);
  if (taken.length > 0) return taken;
  const funds = balance === undefined ? '' : `, which has ${formatEther(balance)} ether`;
  return [ok('chain', `chain ${chainId}, the contracts accept the relayer ${address}${funds}`)];
}

/** What the registry has roots of beside the committed chambers of a restored log. A database on a server is not read. */
async function examineRoots(
  { DATABASE_PATH, DATABASE_URL, CHAMBER_ID_MIN }: Config,
  chain: RelayerConfig,
): Promise<readonly Finding[]> {
  const isCopy = readLog(DATABASE_PATH, (db) => readMeta(db, 'copied_from')) !== undefined;
  if (DATABASE_URL !== undefined || !isCopy) return [];
  const { last = 0, open = [] } = readLog(DATABASE_PATH, (db) => lastChambers(db, IDS_PROBED)) ?? {};
  const from = Math.max(last + 1, CHAMBER_ID_MIN);
  const next = Array.from({ length: IDS_PROBED }, (_, index) => from + index);
  const [taken, ended] = await Promise.all([next, open].map((ids) => committedIds(chain, ids).catch(() => [])));
  const found: Finding[] = [];
  if (taken !== undefined && taken.length > 0) {
    const detail = `the registry has roots of chambers ${taken.join(', ')}, which this log does not have, being a copy of an earlier one: new chambers with these ids could not be committed, so set it to ${(taken.at(-1) ?? 0) + 1} or more`;
    found.push(warning('chain', detail, 'CHAMBER_ID_MIN'));
  }
  if (ended !== undefined && ended.length > 0) {
    const detail = `the registry has roots of chambers ${ended.join(', ')}, which are open in this copy of a log: those of which moves were lost can’t be committed`;
    found.push(warning('chain', detail));
  }
  return found;
}

/** The findings for the service at that URL. */
export async function examineService(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Finding[]> {
  return [
    ...examineUrl(url, env),
    ...(await examineResponses(url).catch((error) => [problem('service', error.message)])),
  ];
}

/** Clients sign the URL that they use, and the service verifies its own. */
function examineUrl(url: string, { PUBLIC_URL }: Readonly<Record<string, string | undefined>>): readonly Finding[] {
  const addresses = PUBLIC_URL?.split(',').flatMap((address) => address.trim() || []) ?? [];
  if (addresses.length === 0 || addresses.some((address) => isSameOrigin(address, url))) return [];
  return [warning('service', `signed requests are for ${addresses.join(' or ')}, not for ${url}`, 'PUBLIC_URL')];
}

function isSameOrigin(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;
}

async function examineResponses(url: string): Promise<readonly Finding[]> {
  const base = url.replace(/\/+$/, '');
  const info = await ask(`${base}/`);
  const { name, version } = info.body;
  if (name !== SERVICE_NAME) throw new Error(`${url} is not a ${SERVICE_NAME}: use its base URL, its PUBLIC_URL`);
  const aheadSeconds = Math.round((Date.parse(info.response.headers.get('date') ?? '') - Date.now()) / 1000);
  const [health, ready, chambers] = await Promise.all(
    ['/health', '/ready', '/chambers?limit=1'].map((path) => ask(base + path)),
  );
  const [newest] = (chambers?.body ?? []) as readonly { readonly chamberId?: number }[];
  const preview = newest && (await ask(`${base}/chambers/${newest.chamberId}/merkle-preview`));
  const logId = preview?.response.headers.get('log-id') ?? 'shown with its first chamber';
  const { ok: isHealthy, clock } = health?.body ?? {};
  const { reason } = Object(clock) as { readonly reason?: string };
  const isReady = ready?.response.ok === true || ready?.response.status === 404;
  return [
    ok('service', `version ${version}, logId ${logId}`),
    isHealthy === true ? ok('service', 'healthy') : problem('service', `not healthy: ${textOf(health?.body)}`),
    isReady ? ok('service', 'ready for moves') : problem('service', `not ready: ${textOf(ready?.body)}`),
    ...(reason === undefined ? [] : [problem('clock', `the service's clock is in doubt: ${reason}`)]),
    Math.abs(aheadSeconds) <= SERVICE_CLOCK_SECONDS_MAX
      ? ok('clock', 'the service and this machine agree on the time')
      : problem('clock', `the service is ${aheadSeconds} s ahead of this clock: signatures made here may be rejected`),
  ];
}

/** Four probes are made at once, and each response is short. */
const PROBE_LIMITS = { ...READ_LIMITS, responseBytesMax: 256 * 1024 };
const BODY_CHARS_SHOWN = 500;

function textOf(body: unknown): string {
  return JSON.stringify(body).slice(0, BODY_CHARS_SHOWN);
}

async function ask(url: string) {
  try {
    const init = { headers: { accept: 'application/json' } };
    const response = await openResponse(fetch, url, init, { wholeMillisMax: PROBE_MILLIS });
    const body = (await response.json(PROBE_LIMITS)) as Readonly<Record<string, unknown>> | undefined;
    if (body === undefined || body === null) throw new Error(`the response with status ${response.status} is not JSON`);
    return { response, body };
  } catch (error) {
    const { message, cause } = error as Error;
    const { code = '', message: reason } = (cause ?? { message }) as NodeJS.ErrnoException;
    const hint = tlsHint(code);
    throw new Error(`no service responds at ${url}: ${hint === undefined ? reason : code + hint}`, { cause: error });
  }
}
