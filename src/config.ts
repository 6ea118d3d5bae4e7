// The environment variables and their rules. readConfig reports all invalid values at once.
import { toBlockList } from './connections/client-address.ts';
import { parseTarget } from './crypto/http-signature.ts';
import { hostUrls } from './log/postgres/database-url.ts';
import { messageOf } from './vocabulary/errors.ts';
import { isWalletAddress } from './vocabulary/schemas.ts';
import { nearestName } from './vocabulary/suggestion.ts';
import { type Hex, SIGNATURE_AGES } from './vocabulary/values.ts';

interface Variable<Value> {
  /** Used when the variable is absent or empty; undefined leaves the value undefined. */
  readonly fallback: Value;
  /** Replaces the fallback if NODE_ENV=production. */
  readonly production?: Value;
  /** Throws an Error that says what the value must be. */
  readonly parse: (text: string) => Value;
  readonly about: string;
}

const integer =
  (min: number, max: number) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new Error(`must be an integer from ${min} to ${max}`);
  };

const matching =
  (pattern: RegExp, problem: string) =>
  (text: string): string => {
    if (pattern.test(text)) return text;
    throw new Error(problem);
  };

const listOf =
  <Item>(parse: (text: string) => Item) =>
  (text: string): readonly Item[] =>
    text.split(',').map((part) => parse(part.trim()));

function variable<Value>(fallback: Value, parse: (text: string) => Value, about: string): Variable<Value> {
  return { fallback, parse, about };
}

function optional<Value>(parse: (text: string) => Value, about: string): Variable<Value | undefined> {
  return { fallback: undefined, parse, about };
}

const MANY = 1_000_000_000;
const positive = integer(1, MANY);
const path = matching(/./, 'must be a path');
/** SQLite's binding drops trailing white space, so the file and its lock would have different names. */
const databasePath = matching(/\S$/, 'must be a path that does not end with white space');
const host = matching(/^\S+$/, 'must be a host name or address');

/** Returns a limit that is generous by default and strict in production. */
function limit(fallback: number, production: number, about: string): Variable<number> {
  return { fallback, production, parse: positive, about };
}

function parseCidr(text: string): string {
  try {
    toBlockList([text]);
    return text;
  } catch {
    throw new Error('must be addresses in CIDR notation separated by commas, e.g. 127.0.0.1, 10.0.0.0/8');
  }
}

/** Accepts only the spelling that clients use, because signatures cover the exact text. */
function parseBaseUrl(text: string): string {
  const base = parseUrl(text).replace(/\/+$/, '');
  const { href, username, password } = new URL(text);
  const isPlain = !/[?#]/.test(text) && username === '' && password === '' && href.replace(/\/+$/, '') === base;
  if (isPlain && parseTarget(text) !== undefined) return base;
  throw new Error(
    'must be a plain base URL: lower-case host, no default port, user, query or fragment, %-encodings of UTF-8 only',
  );
}

function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) throw new Error('must be an http(s) URL');
  return text;
}

function parseDatabaseUrl(text: string): string {
  hostUrls(text);
  return text;
}

function parseAddress(text: string): string {
  if (isWalletAddress(text)) return text;
  throw new Error('must be an EVM address with a valid checksum');
}

const SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

function parsePrivateKey(text: string): Hex {
  const isHex = /^0x[0-9a-fA-F]{64}$/.test(text);
  if (isHex && BigInt(text) > 0n && BigInt(text) < SECP256K1_ORDER) return text as Hex;
  throw new Error('must be a secp256k1 private key: 0x and 64 hex digits');
}

const WEI_PER_GWEI = 1_000_000_000n;
const GWEI_DIGITS = 9;

/** Returns wei. */
function parseGwei(text: string): bigint {
  const [, whole = '', fraction = ''] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  const wei = BigInt(whole || 0) * WEI_PER_GWEI + BigInt(fraction.padEnd(GWEI_DIGITS, '0'));
  if (wei > 0n) return wei;
  throw new Error('must be a decimal number of gwei above 0, e.g. 30 or 0.05');
}

/** A misspelt "production" would silently turn off every strict check. */
const ENVIRONMENT = /^(?!prod$)[a-z][a-z0-9_-]*$/;
const LOG_LEVELS = 'fatal, error, warn, info, debug, trace, silent';
const LOG_LEVEL = new RegExp(`^(${LOG_LEVELS.replaceAll(', ', '|')})$`);
const DAY_SECONDS = 86_400;

const { defaults, caps } = SIGNATURE_AGES;

export const VARIABLES = {
  PORT: variable(8787, integer(0, 65_535), 'port to listen on; 0 picks a free one'),
  HOST: variable('127.0.0.1', host, 'address to listen on'),
  PUBLIC_URL: variable<readonly string[]>(
    [],
    listOf(parseBaseUrl),
    'base URL that clients use; several separated by commas',
  ),
  DATABASE_PATH: variable('data/chambers.db', databasePath, 'SQLite file, or :memory:'),
  DATABASE_URL: optional(
    parseDatabaseUrl,
    'PostgreSQL instead of a file: postgres://USER:PASSWORD@HOST:PORT/NAME; several hosts separated by commas',
  ),
  DATABASE_CONNECTIONS_MAX: variable(
    10,
    integer(1, 1_000),
    'connections to PostgreSQL for reads, besides up to seven others',
  ),
  SERVICE_KEY_FILE: optional(
    path,
    'file of the keys that sign receipts and checkpoints; absent: created next to the database',
  ),
  WITNESS_POLICY_FILE: optional(path, 'file of the witnesses that cosign checkpoints (C2SP tlog-policy)'),
  NODE_ENV: variable(
    'development',
    matching(ENVIRONMENT, 'must be a word in lower case, e.g. development, test or production'),
    'production turns on the strict checks',
  ),
  DEV_ALLOW_UNSIGNED: variable(false, (text) => text === 'true', 'true allows X-Dev-Did; for development only'),
  RPC_URL: optional(parseUrl, 'JSON-RPC address of the chain'),
  CHAIN: optional(matching(/^none$/, 'must be none, or absent'), 'none runs without a relayer'),
  CHAIN_ID: optional(integer(1, Number.MAX_SAFE_INTEGER), 'chain id that the RPC must report'),
  CHAMBER_REGISTRY_ADDRESS: optional(parseAddress, 'contract with commitChamber'),
  IDEA_FACTORY_ADDRESS: optional(parseAddress, 'contract with deployIdea'),
  CONTRACTS: variable(
    'reference',
    matching(/^(reference|quorum)$/, 'must be reference or quorum'),
    'interface of the two contracts: reference or quorum',
  ),
  CONTRACTS_FILE: optional(path, 'JSON file with the other arguments of quorum deployments'),
  RELAYER_PRIVATE_KEY: optional(parsePrivateKey, 'key of the relayer account'),
  CONFIRMATIONS: variable(1, integer(1, 1_000), 'blocks until a transaction counts as confirmed'),
  FEE_BUMP_SECONDS: variable(30, integer(1, DAY_SECONDS), 'age at which a stuck transaction is sent with a higher fee'),
  FEE_MAX_GWEI: optional(
    parseGwei,
    'maximum fee per gas of a transaction, including the tip; absent: ten times the recent fees of the chain, at least 50',
  ),
  FEE_TIP_GWEI: optional(parseGwei, 'tip per gas if the RPC suggests none'),
  SIGNATURE_MAX_AGE_SECONDS: variable(
    defaults.maxAgeSeconds,
    integer(1, caps.maxAgeSeconds),
    'maximum age of a signature',
  ),
  SIGNATURE_MAX_SKEW_SECONDS: variable(
    defaults.maxSkewSeconds,
    integer(0, caps.maxSkewSeconds),
    'how far in the future a signature may be dated',
  ),
  CLOCK_JUMP_SECONDS: variable(
    300,
    integer(1, DAY_SECONDS),
    'how long a clock must keep its new time after a jump to be trusted',
  ),
  MAX_BODY_BYTES: variable(65_536, integer(1, 16_777_216), 'largest request body'),
  MEMBERS_MAX: variable(256, integer(1, 100_000), 'members of a chamber'),
  IDEAS_MAX: variable(256, integer(1, 100_000), 'ideas of a chamber'),
  CHAMBER_ID_MIN: variable(
    1,
    positive,
    'lowest id of a new chamber: after a restore, set it above every id for which the registry has a root',
  ),
  CHAMBERS_OPEN_PER_DID_MAX: limit(100_000, 100, 'uncommitted chambers of one creator'),
  RATE_PER_DID_PER_SECOND: limit(10_000, 50, 'signed requests from one agent, sustained'),
  RATE_PER_DID_BURST: limit(20_000, 200, 'signed requests from one agent, at once'),
  ACCOUNT_CHANGES_PER_DID_PER_MINUTE: limit(
    600_000,
    10,
    'personality changes and signed registrations by one agent, sustained',
  ),
  ACCOUNT_CHANGES_PER_DID_BURST: limit(
    100_000,
    30,
    'personality changes and signed registrations by one agent, at once',
  ),
  RATE_PER_ADDRESS_PER_SECOND: limit(50_000, 500, 'requests from one address, sustained'),
  RATE_PER_ADDRESS_BURST: limit(100_000, 2_000, 'requests from one address, at once'),
  WORK_MS_PER_ADDRESS_PER_SECOND: limit(
    100_000,
    250,
    'milliseconds of main-thread time per second for requests from one address, sustained',
  ),
  WORK_MS_PER_ADDRESS_BURST: limit(
    100_000,
    1_000,
    'milliseconds of main-thread time for requests from one address, at once',
  ),
  READS_PER_ADDRESS_MAX: limit(
    50_000,
    64,
    'unsigned reads from one address that are queued, running or not yet received by the client',
  ),
  REGISTRATIONS_PER_ADDRESS_PER_MINUTE: limit(
    600_000,
    10,
    'unsigned registrations of new keys from one address, sustained',
  ),
  REGISTRATIONS_PER_ADDRESS_BURST: limit(100_000, 100, 'unsigned registrations of new keys from one address, at once'),
  TRUSTED_PROXIES: variable<readonly string[]>(
    [],
    listOf(parseCidr),
    'proxies (CIDR list) whose Forwarded or X-Forwarded-For counts for limits',
  ),
  ALLOW_LIST_FILE: optional(path, 'file of the DIDs that may register, create and join; all others are rejected'),
  BAN_LIST_FILE: optional(path, 'file of DIDs that may not register, create or join'),
  WITHHOLD_FILE: optional(path, 'file of the events whose texts are withheld permanently'),
  COMMIT_QUEUE_MAX: variable(2_048, integer(1, 1_000_000), 'moves waiting to be committed; further moves get 503'),
  CONNECTIONS_MAX: variable(50_000, positive, 'open connections'),
  WAITS_PER_DID_MAX: variable(16, positive, 'concurrent waiting requests from one agent at `/me/todo`'),
  CALLBACKS: {
    fallback: 'on',
    production: 'off',
    parse: matching(/^(on|off)$/, 'must be on or off'),
    about: 'whether agents may set callbacks (`PUT /me/callback`): on or off',
  },
  CALLBACK_CHALLENGES_PER_DID_PER_HOUR: variable(10, positive, 'callbacks verified per hour for one agent'),
  CALLBACK_CHALLENGES_PER_ADDRESS_PER_HOUR: variable(60, positive, 'callbacks verified per hour for one address'),
  CALLBACKS_PER_SECOND_MAX: variable(100, integer(1, 10_000), 'callback attempts started per second'),
  CALLBACK_DUTIES_MAX: variable(
    20_000,
    integer(100, 1_000_000),
    'duties waiting for delivery; further duties are found again later',
  ),
  STREAMS_PER_ADDRESS_MAX: variable(20_000, positive, 'open streams to one address'),
  HEADERS_TIMEOUT_SECONDS: variable(15, integer(1, 3_600), 'time for a request head to arrive'),
  REQUEST_TIMEOUT_SECONDS: variable(30, integer(1, 3_600), 'time for a whole request to arrive'),
  KEEP_ALIVE_SECONDS: variable(60, integer(1, 3_600), 'idle time of a keep-alive connection'),
  STALL_SECONDS: variable(
    600,
    integer(1, 3_600),
    'time without a byte received or sent after which a request or response is aborted',
  ),
  HEADER_BYTES_MAX: variable(16_384, integer(1_024, 1_048_576), 'largest request head'),
  PIPELINED_REQUESTS_MAX: variable(10_000, positive, 'pipelined requests waiting for their turn, over all connections'),
  STREAM_PING_SECONDS: variable(30, integer(1, 3_600), 'time between pings on a stream'),
  STREAM_DEAD_SECONDS: variable(60, integer(2, 7_200), 'silence after which a stream is closed'),
  STATE_CACHE_BYTES_MAX: variable(67_108_864, positive, 'memory for folded chambers and accounts, estimated'),
  RESPONSE_CACHE_BYTES_MAX: variable(33_554_432, positive, 'memory for responses and pages that all readers share'),
  VERIFIER_THREADS: optional(integer(1, 64), 'threads that verify signatures'),
  METRICS_PORT: optional(integer(0, 65_535), 'port for GET /metrics; absent: none'),
  METRICS_HOST: variable('127.0.0.1', host, 'address of METRICS_PORT'),
  BACKUP_STAMP_FILE: optional(path, 'file that a verified backup touches, for the metric of its age; absent: none'),
  LOG_LEVEL: variable('info', matching(LOG_LEVEL, `must be one of ${LOG_LEVELS}`), LOG_LEVELS),
  LOG_FORMAT: variable('json', matching(/^(json|pretty)$/, 'must be json or pretty'), 'json, or pretty for people'),
  LOG_BUFFER_BYTES_MAX: variable(
    1_048_576,
    integer(16_384, MANY),
    'log lines buffered while standard error is blocked; further lines are lost',
  ),
} as const;

export type Config = { readonly [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name]['fallback'] };

export interface ConfigProblem {
  /** The variable to set; null if none fixes the problem. */
  readonly variable: keyof Config | null;
  readonly problem: string;
}

export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(`the configuration is wrong:\n${problems.map((each) => `  ${describeProblem(each)}`).join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export function describeProblem({ variable, problem }: { readonly variable: string | null; readonly problem: string }) {
  return variable === null ? problem : `${variable}: ${problem}`;
}

/** Reads the file that a variable names; throws ConfigError on failure. */
export function readConfigured<Value>(variable: ConfigProblem['variable'], read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new ConfigError([{ variable, problem: messageOf(error) }]);
  }
}

type Environment = Readonly<Record<string, string | undefined>> & { readonly NODE_ENV?: string | undefined };

/** Reads the environment; throws ConfigError. */
export function readConfig(env: Environment): Config {
  const problems = new Map<keyof Config, string>();
  const values: Record<string, unknown> = {};
  const isProduction = env.NODE_ENV === 'production';
  for (const [name, { fallback, production, parse }] of Object.entries(VARIABLES) as [
    keyof Config,
    Variable<unknown>,
  ][]) {
    values[name] = isProduction ? (production ?? fallback) : fallback;
    try {
      if (env[name]) values[name] = parse(env[name]);
    } catch (error) {
      problems.set(name, messageOf(error));
    }
  }
  const config = values as Config;
  for (const [name, problem] of crossProblems(config)) if (!problems.has(name)) problems.set(name, problem);
  if (problems.size === 0) return config;
  const wrong = [...problems].map(([variable, problem]) => ({ variable, problem }));
  // A missing variable may be set under a misspelt name.
  throw new ConfigError([...wrong, ...misspeltNames(env)]);
}

/** Shorter names probably belong to other programs; names with PG belong to PostgreSQL. */
const CANDIDATE = /^(?!PG).{6,}$/;
const PREFIX = 'CHAMBERS_';

/** Finds variables whose names resemble ours: the service would ignore them and use a default. */
export function misspeltNames(env: Environment): readonly ConfigProblem[] {
  const names = Object.keys(VARIABLES) as (keyof Config)[];
  const isOurs = (name: string): name is keyof Config => Object.hasOwn(VARIABLES, name);
  return Object.keys(env)
    .filter((name) => env[name] && !isOurs(name) && CANDIDATE.test(name))
    .flatMap((name) => {
      const plain = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
      const meant = isOurs(plain) ? plain : nearestName(name, names);
      return meant === undefined
        ? []
        : [{ variable: meant, problem: `not set, but ${name} is: did you mean ${meant}?` }];
    })
    .filter(({ variable }) => !env[variable]);
}

/** Yields the problems of values that contradict each other. */
function* crossProblems(config: Config): Generator<readonly [name: keyof Config, problem: string]> {
  if (config.STREAM_PING_SECONDS >= config.STREAM_DEAD_SECONDS) {
    // Otherwise a peer would be disconnected before it is pinged.
    yield ['STREAM_PING_SECONDS', `must be less than STREAM_DEAD_SECONDS, which is ${config.STREAM_DEAD_SECONDS}`];
  }
  if (config.DATABASE_URL !== undefined && config.DATABASE_PATH !== VARIABLES.DATABASE_PATH.fallback) {
    yield [
      'DATABASE_URL',
      'cannot be combined with DATABASE_PATH: the log is either in PostgreSQL or in a file. If the unit or the image sets it, clear it with DATABASE_PATH= in the settings',
    ];
  }
  if (isSamePort(config)) yield ['METRICS_PORT', `must be a port other than PORT, which is ${config.PORT}`];
  if (config.CHAIN !== 'none' && config.RPC_URL !== undefined) {
    for (const name of ['RELAYER_PRIVATE_KEY', 'CHAMBER_REGISTRY_ADDRESS', 'IDEA_FACTORY_ADDRESS'] as const) {
      if (config[name] === undefined) yield [name, 'is needed with RPC_URL'];
    }
  }
  if (config.CHAIN !== 'none' && config.CONTRACTS === 'quorum') {
    for (const name of ['RPC_URL', 'CONTRACTS_FILE'] as const) {
      if (config[name] === undefined) yield [name, 'is needed with CONTRACTS=quorum'];
    }
  }
  if (config.CONTRACTS === 'reference' && config.CONTRACTS_FILE !== undefined) {
    yield ['CONTRACTS_FILE', 'is for CONTRACTS=quorum only'];
  }
  if (config.NODE_ENV !== 'production') return;
  if (config.PUBLIC_URL.length === 0) {
    const why = 'otherwise the Host header would decide what a signature covers';
    yield ['PUBLIC_URL', `is needed with NODE_ENV=production, ${why}`];
  }
  if (config.DEV_ALLOW_UNSIGNED) yield ['DEV_ALLOW_UNSIGNED', 'must not be set with NODE_ENV=production'];
  if (config.RPC_URL === undefined && config.CHAIN === undefined) {
    yield ['RPC_URL', 'is needed with NODE_ENV=production (or CHAIN=none)'];
  }
  if (config.SERVICE_KEY_FILE === undefined && config.DATABASE_PATH !== ':memory:') {
    yield ['SERVICE_KEY_FILE', 'is needed with NODE_ENV=production: create it with chambers admin new-keys'];
  }
}

const ALL_ADDRESSES: readonly string[] = ['0.0.0.0', '::'];

function isSamePort({ PORT, HOST, METRICS_PORT, METRICS_HOST }: Config): boolean {
  const hosts = [HOST, METRICS_HOST];
  return PORT !== 0 && METRICS_PORT === PORT && (HOST === METRICS_HOST || hosts.some((h) => ALL_ADDRESSES.includes(h)));
}
