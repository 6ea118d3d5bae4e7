// The settings: misspelt names, files that they name, unsafe flags, and the values in force.
import { existsSync, readFileSync } from 'node:fs';
import { type Config, ConfigError, misspeltNames } from '../../config.ts';
import { describeDatabase } from '../../log/postgres/database-url.ts';
import { nearestName } from '../../vocabulary/suggestion.ts';
import { readLists, readWitnesses } from '../configured-files.ts';
import type { Check } from './check.ts';
import { type Finding, ofConfiguration, ok, warning } from './finding.ts';

/** Misspelt names, or a misspelt `production`, would be ignored silently. */
export const checkNames: Check = ({ env, config: { NODE_ENV } }) => [
  ...misspeltNames(env).map(({ variable, problem }) => warning('configuration', problem, variable)),
  ...(NODE_ENV !== PRODUCTION && nearestName(NODE_ENV, [PRODUCTION])
    ? [warning('configuration', `${NODE_ENV} turns on no strict checks: did you mean ${PRODUCTION}?`, 'NODE_ENV')]
    : []),
];

const PRODUCTION = 'production';

export const checkOpenFiles: Check = () => found(requireOpenFiles);

/** The service itself opens some fifty. */
const OPEN_FILES_MIN = 256;
const LIMITS = '/proc/self/limits';

/** Throws ConfigError: with fewer files, a start would fail in one of many places, or at the first connections. */
function requireOpenFiles(): void {
  if (!existsSync(LIMITS)) return;
  // Node has raised the soft limit to the hard one.
  const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync(LIMITS, 'latin1')) ?? [];
  if (limit === undefined || Number(limit) >= OPEN_FILES_MIN) return;
  const problem = `the limit of open files is ${limit}, and must be at least ${OPEN_FILES_MIN}: raise it (ulimit -n, LimitNOFILE)`;
  throw new ConfigError([{ variable: null, problem }]);
}

/** The files that a start reads, once every variable is valid. */
export const checkFiles: Check = async ({ config }) => {
  const read: (() => unknown)[] = [() => readLists(config), () => readWitnesses(config)];
  if (config.CHAIN !== 'none') {
    const { configuredContracts } = await import('../chain-settings.ts');
    read.push(() => configuredContracts(config));
  }
  const findings = read.flatMap(found);
  return findings.length > 0 ? findings : [ok('configuration', 'every variable is valid')];
};

function found(read: () => unknown): readonly Finding[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return ofConfiguration(error);
  }
}

export const checkFlags: Check = ({ config }) => {
  const isLocal = ['127.0.0.1', 'localhost', '::1'].includes(config.HOST);
  const isProduction = config.NODE_ENV === 'production';
  const unsigned = 'requests with X-Dev-Did are accepted without a signature: unset it outside development';
  const unchecked = `the service listens on ${config.HOST} without the checks of NODE_ENV=production`;
  const isUnsafe: readonly (readonly [boolean, string, string])[] = [
    [config.DEV_ALLOW_UNSIGNED, 'DEV_ALLOW_UNSIGNED', unsigned],
    [!isLocal && !isProduction, 'NODE_ENV', unchecked],
    [isProduction && config.CHAIN === 'none', 'CHAIN', 'without a chain, no chamber is ever committed'],
    [
      isProduction && config.DATABASE_URL === undefined && config.DATABASE_PATH === ':memory:',
      'DATABASE_PATH',
      'the log is in memory: it is lost when the process ends',
    ],
  ];
  const unsafe = isUnsafe.filter(([isSo]) => isSo).map(([, variable, detail]) => warning('flags', detail, variable));
  return unsafe.length > 0 ? unsafe : [ok('flags', 'nothing unsafe is set')];
};

/** Settings whose defaults do not fit every deployment. */
const SHOWN = [
  'PUBLIC_URL',
  'TRUSTED_PROXIES',
  'CONFIRMATIONS',
  'FEE_MAX_GWEI',
  'CHAMBER_ID_MIN',
  'ALLOW_LIST_FILE',
  'BAN_LIST_FILE',
  'WITHHOLD_FILE',
  'CALLBACKS',
  'METRICS_PORT',
  'BACKUP_STAMP_FILE',
] as const satisfies readonly (keyof Config)[];

export const showSettings: Check = ({ env, config }) => [
  ok('settings', `${config.NODE_ENV}, listening on ${config.HOST}:${config.PORT}`, 'NODE_ENV'),
  config.DATABASE_URL === undefined
    ? ok('settings', config.DATABASE_PATH, 'DATABASE_PATH')
    : ok('settings', describeDatabase(config.DATABASE_URL), 'DATABASE_URL'),
  ...SHOWN.map((name) => {
    const value = String(config[name] ?? '') || 'none';
    return ok('settings', env[name] ? String(env[name]) : `${value} (default)`, name);
  }),
];
