// Checks the settings: misspelled names, the files that they name, unsafe flags and the limit on open files. Shows the effective values.

import { existsSync, readFileSync } from 'node:fs';
import { type Config, ConfigError, misspeltNames } from '../../config.ts';
import { describeDatabase } from '../../log/postgres/database-url.ts';
import { messageOf } from '../../vocabulary/errors.ts';
import { nearestName } from '../../vocabulary/suggestion.ts';
import { readWithholdList } from '../../withholding/list.ts';
import { readLists, readWitnesses } from '../configured.ts';
import type { Check } from './check.ts';
import { configurationFindings, type Finding, ok, problem, warning } from './finding.ts';

/** Warns about misspelled names and a misspelled `production`, which would otherwise be ignored silently. */
export const checkNames: Check = ({ env, config: { NODE_ENV } }) => [
  ...misspeltNames(env).map(({ variable, problem }) => warning('configuration', problem, variable)),
  ...(NODE_ENV !== PRODUCTION && nearestName(NODE_ENV, [PRODUCTION])
    ? [warning('configuration', `${NODE_ENV} enables no strict checks: did you mean ${PRODUCTION}?`, 'NODE_ENV')]
    : []),
];

const PRODUCTION = 'production';

export const checkOpenFiles: Check = () => problemsOf(requireOpenFiles);

/** The service itself opens about 50 files. */
const OPEN_FILES_MIN = 256;
const LIMITS = '/proc/self/limits';

/** Throws ConfigError. With fewer files, a start would fail in one of many places, or at the first connections. */
function requireOpenFiles(): void {
  if (!existsSync(LIMITS)) return;
  // Node has raised the soft limit to the hard limit.
  const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync(LIMITS, 'latin1')) ?? [];
  if (limit === undefined || Number(limit) >= OPEN_FILES_MIN) return;
  const problem = `the limit of open files is ${limit}, and must be at least ${OPEN_FILES_MIN}: raise it (ulimit -n, LimitNOFILE)`;
  throw new ConfigError([{ variable: null, problem }]);
}

/** Checks the files that a start reads. Every variable is valid by then. */
export const checkFiles: Check = async ({ config }) => {
  const read: (() => unknown)[] = [() => readLists(config), () => readWitnesses(config)];
  if (config.CHAIN !== 'none') {
    const { configuredContracts } = await import('../chain-settings.ts');
    read.push(() => configuredContracts(config));
  }
  const findings = read.flatMap(problemsOf);
  return findings.length > 0 ? findings : [ok('configuration', 'every variable is valid')];
};

function problemsOf(read: () => unknown): readonly Finding[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return configurationFindings(error);
  }
}

export const checkFlags: Check = ({ config }) => {
  const isLocal = ['127.0.0.1', 'localhost', '::1'].includes(config.HOST);
  const isProduction = config.NODE_ENV === 'production';
  const unsigned = 'requests with X-Dev-Did are accepted without a signature: unset it outside development';
  const unchecked = `the service listens on ${config.HOST} without the checks of NODE_ENV=production`;
  const flags: readonly (readonly [boolean, string, string])[] = [
    [config.DEV_ALLOW_UNSIGNED, 'DEV_ALLOW_UNSIGNED', unsigned],
    [!isLocal && !isProduction, 'NODE_ENV', unchecked],
    [isProduction && config.CHAIN === 'none', 'CHAIN', 'without a chain, no chamber is ever committed'],
    [
      isProduction && config.DATABASE_URL === undefined && config.DATABASE_PATH === ':memory:',
      'DATABASE_PATH',
      'the log is in memory: it is lost when the process ends',
    ],
  ];
  const unsafe = flags
    .filter(([isUnsafe]) => isUnsafe)
    .map(([, variable, detail]) => warning('flags', detail, variable));
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

/** Checks the list of texts to withhold. A start does not, because the service skips and logs entries that it can't apply. */
export const checkWithholdings: Check = ({ config: { WITHHOLD_FILE: path } }) => {
  if (path === undefined) return [];
  const variable = 'WITHHOLD_FILE';
  try {
    const { entries, badLines } = readWithholdList(path);
    if (badLines.length === 0) return [ok('configuration', `${path} names ${entries.length} events`, variable)];
    return badLines.map(({ line, problem: reason }) =>
      problem('configuration', `${path}, line ${line}: ${reason}`, { variable }),
    );
  } catch (error) {
    return [problem('configuration', messageOf(error), { variable })];
  }
};
