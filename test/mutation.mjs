// Changes the pure code in one place at a time, and runs the tests that reach it; a change that no test detects survives. All
// folders take a few minutes, because mutation-runner.mjs runs the tests in one process. The program fails if fewer than 90 % of
// a folder's changes are detected. Arguments name the folders or files to change. Stryker is not a dependency of the project: it
// is installed beside the other caches, at the version below.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STRYKER_VERSION = '10.1.1';
const HOME = join(ROOT, 'node_modules/.cache', `stryker-${STRYKER_VERSION}`);
const FOLDERS = ['src/moves', 'projections', 'src/crypto', 'src/vocabulary'];
const SANDBOX = '.mutation';
const SCORE_MIN = 90;
const DETECTED = ['Killed', 'Timeout'];
const SURVIVED = ['Survived', 'NoCoverage'];

if (!existsSync(join(HOME, 'node_modules/@stryker-mutator/core'))) install();
process.chdir(ROOT);
const words = process.argv.slice(2);
const mutants = await mutate(words.length > 0 ? words : FOLDERS);
process.exitCode = FOLDERS.map(isGoodEnough).includes(false) ? 1 : 0;

function install() {
  mkdirSync(HOME, { recursive: true });
  writeFileSync(join(HOME, 'package.json'), '{ "private": true }\n');
  const flags = ['--no-save', '--legacy-peer-deps', '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', ['install', '--prefix', HOME, ...flags, `@stryker-mutator/core@${STRYKER_VERSION}`], {
    cwd: HOME,
    stdio: 'inherit',
  });
}

async function mutate(places) {
  const main = join(HOME, 'node_modules/@stryker-mutator/core/dist/src/index.js');
  const { Stryker } = await import(pathToFileURL(main).href);
  const stryker = new Stryker({
    mutate: places.map((place) => (place.endsWith('.ts') ? place : `${place}/**/*.ts`)),
    plugins: [new URL('mutation-runner.mjs', import.meta.url).href],
    testRunner: 'in-process',
    coverageAnalysis: 'perTest',
    reporters: ['progress-append-only', 'clear-text', 'html'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: true },
    htmlReporter: { fileName: join(HOME, 'report.html') },
    // Stryker's rewriting of the file needs an older TypeScript.
    tsconfigFile: 'none',
    checkers: [],
    concurrency: 1,
    // On a busy machine, slow tests must not count as detecting a change.
    timeoutMS: 20_000,
    // Changes in code that runs when a module is loaded, mostly texts and schemas, would run all tests.
    ignoreStatic: true,
    // The folder is inside the project, because it uses the project's node_modules.
    tempDirName: SANDBOX,
    symlinkNodeModules: false,
    ignorePatterns: ['.git', 'dist', 'data'],
    allowConsoleColors: false,
    thresholds: { high: 95, low: SCORE_MIN, break: null },
  });
  try {
    return await stryker.runMutationTest();
  } finally {
    rmSync(join(ROOT, SANDBOX), { recursive: true, force: true });
  }
}

/** Prints the folder's score; a folder without changes is good enough. */
function isGoodEnough(folder) {
  const inside = mutants.filter(({ fileName }) => relative(ROOT, fileName).startsWith(`${folder}/`));
  const count = (statuses) => inside.filter(({ status }) => statuses.includes(status)).length;
  const [detected, survived] = [count(DETECTED), count(SURVIVED)];
  if (detected + survived === 0) return true;
  const score = (100 * detected) / (detected + survived);
  process.stdout.write(`${folder}: ${score.toFixed(1)} % (${detected} detected, ${survived} survived)\n`);
  return score >= SCORE_MIN;
}
