// The settings themselves: names that were meant to be ours, files that are named, flags that are unsafe, and what is in force.
import { type Config, ConfigError, misspeltNames } from '../../config.ts';
import { describeDatabase } from '../../log/postgres/database-url.ts';
import { nearestOf } from '../../vocabulary/suggestion.ts';
import { configuredContracts } from '../chain-settings.ts';
import { readLists, readWitnesses } from '../configured-files.ts';
import { requireOpenFiles } from '../open-files.ts';
import type { Check } from './check.ts';
import { type Finding, ofConfiguration, ok, warning } from './finding.ts';

/** A misspelt name, or a misspelt production, would be ignored. */
export const checkNames: Check = ({ env, config: { NODE_ENV } }) => [
  ...misspeltNames(env).map(({ variable, problem }) => warning('configuration', problem, variable)),
  ...(NODE_ENV !== PRODUCTION && nearestOf(NODE_ENV, [PRODUCTION])
    ? [warning('configuration', `${NODE_ENV} turns on no strict checks: did you mean ${PRODUCTION}?`, 'NODE_ENV')]
    : []),
];

const PRODUCTION = 'production';

export const checkOpenFiles: Check = () => found(requireOpenFiles);

/** The files that a start reads whole, once every variable is valid. */
export const checkFiles: Check = ({ config }) => {
  const read = [
    () => readLists(config),
    () => readWitnesses(config),
    () => config.CHAIN !== 'none' && configuredContracts(config),
  ];
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

/** Those with a default that fits many set-ups and not all. */
const SHOWN = [
  'PUBLIC_URL',
  'TRUSTED_PROXIES',
  'CONFIRMATIONS',
  'FEE_MAX_GWEI',
  'CHAMBER_ID_MIN',
  'ALLOW_LIST_FILE',
  'BAN_LIST_FILE',
  'METRICS_PORT',
  'BACKUP_STAMP_FILE',
] as const satisfies readonly (keyof Config)[];

/** What is in force. */
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
