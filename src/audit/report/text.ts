// Formats the report for people, in lines of 80 characters: the verdict, then the broken and undecided checks with their reasons.
import { paint } from '../../process/terminal.ts';
import { withCommas } from '../../vocabulary/values.ts';
import { visibleLine } from '../../vocabulary/visible.ts';
import { CHECK_NAMES } from './findings.ts';
import type { AuditReport, ChamberReport, ReportedCheck } from './report-types.ts';
import { listed, withheldIn } from './withheld-texts.ts';

const LINE_CHARS = 80;
const CAUSES_SHOWN_MAX = 10;
const FINDINGS_SHOWN_MAX = 20;
const EVENTS_SHOWN_MAX = 50;
const VERDICT_CHARS = 'not evaluated'.length;
const NAME_CHARS = Math.max(...CHECK_NAMES.map(({ length }) => length));
const STYLES = { verified: 'green', broken: 'red', undecided: 'yellow', 'not evaluated': 'yellow' } as const;
const FILE_ALONE =
  'A file alone does not show whether its end was cut off, or the state of the service and the chain: audit the service’s URL, with --rpc and --registry.';
/** Aligns the list of a chamber's withheld texts with its verdict. */
const ROW_INDENT = ' '.repeat('chamber '.length + 8 + 1);
const WORDS = { verified: 'sound', broken: 'broken', undecided: 'undecided' } as const;

/** `isVerbose` includes every check of every chamber. */
export function toText(report: AuditReport, isVerbose: boolean): string {
  const { verdict, sentence, problems, doubts = [], chambers } = report;
  const [only] = chambers;
  const isOne = chambers.length === 1 && problems.length + doubts.length === 0;
  const blocks = [
    paint(['bold', STYLES[verdict]], wrapped(sentence)),
    problems.map((problem) => wrapped(`broken: ${problem}`)).join('\n'),
    doubts.map((doubt) => wrapped(`undecided: ${doubt}`)).join('\n'),
    ...(isOne && only ? [toBlock(only, isVerbose, true)] : listOf(chambers, isVerbose)),
  ];
  return blocks.filter((block) => block !== '').join('\n\n');
}

function listOf(chambers: readonly ChamberReport[], isVerbose: boolean): readonly string[] {
  const rows = chambers.map((chamber) => {
    const { chamberId, verdict, lines, root } = chamber;
    const word = paint(STYLES[verdict], WORDS[verdict].padEnd('undecided'.length));
    const short = root === null ? '' : `root ${root.slice(0, 10)}…${root.slice(-8)}`;
    const row =
      `chamber ${String(chamberId).padEnd(8)} ${word} ${count(lines, 'event').padStart(18)}  ${short}`.trimEnd();
    const { groups, count: withheld } = withheldIn([chamber]);
    return withheld === 0
      ? row
      : `${row}\n${wrapped(`${ROW_INDENT}texts withheld: ${listed(groups)}`, ROW_INDENT.length)}`;
  });
  const number = (wanted: ChamberReport['verdict']) => chambers.filter(({ verdict }) => verdict === wanted).length;
  const sum = (['verified', 'broken', 'undecided'] as const).filter((each) => number(each) > 0);
  const words = sum.map((each) => `${number(each)} ${WORDS[each]}`).join(', ');
  const events = chambers.reduce((total, { lines }) => total + lines, 0);
  const shown = chambers.filter(({ verdict }) => isVerbose || verdict !== 'verified');
  const total = wrapped(`${count(chambers.length, 'chamber')}, ${count(events, 'event')}: ${words}.`);
  return [rows.join('\n'), ...shown.map((chamber) => toBlock(chamber, isVerbose)), total];
}

/** `isOnly` omits the chamber's sentence, which the report has already stated. */
function toBlock(chamber: ChamberReport, isVerbose: boolean, isOnly = false): string {
  const { source, chamberId, lines, moves, root, causes, checks, sentence } = chamber;
  const head = `Chamber ${chamberId ?? '?'} of ${source}: ${count(lines, 'line')}, ${count(moves, 'move')}`;
  const rows = [paint('bold', wrapped(head)), `root ${root ?? '–'}`];
  if (isVerbose) {
    const verdict = isOnly ? [] : ['', wrapped(sentence)];
    return [...rows, ...verdict, '', ...checks.flatMap(toRows), '', summary(chamber, true)].join('\n');
  }
  for (const [index, cause] of causes.slice(0, CAUSES_SHOWN_MAX).entries()) {
    const title = causes.length === 1 ? 'Evidence:' : `${cause.sentence}:`;
    rows.push('', wrapped(title), ...section(checks, (finding) => finding.cause === index));
  }
  const more = causes.length - CAUSES_SHOWN_MAX;
  if (more > 0) rows.push('', `And ${more} more causes; --json lists them.`);
  const consequences = section(checks, ({ isConsequence }) => isConsequence);
  if (consequences.length > 0) rows.push('', 'Consequences:', ...consequences);
  const others = section(checks, ({ cause, isConsequence }) => cause === null && !isConsequence);
  if (others.length > 0) rows.push('', 'Further findings:', ...others);
  const open = checks.filter(({ verdict }) => verdict === 'undecided');
  if (open.length > 0) rows.push('', 'Undecided:', ...open.map(({ name, note }) => item(name, note ?? '')));
  return [...rows, '', summary(chamber, false)].join('\n');
}

type Wanted = (finding: ReportedCheck['findings'][number]) => boolean;

function section(checks: readonly ReportedCheck[], isWanted: Wanted): readonly string[] {
  const rows = checks.flatMap(({ name, findings }) =>
    findings.filter(isWanted).map(({ sentence }) => item(name, sentence)),
  );
  const more = rows.length - FINDINGS_SHOWN_MAX;
  return more > 0 ? [...rows.slice(0, FINDINGS_SHOWN_MAX), `  and ${more} more; --json lists them`] : rows;
}

function item(name: string, sentence: string): string {
  return wrapped(`  ${name.padEnd(NAME_CHARS)}  ${sentence}`, NAME_CHARS + 4);
}

function toRows({ name, title, verdict, counts, findings, findingsLeftOut, note }: ReportedCheck): readonly string[] {
  const subjects = counts.verified + counts.broken + counts.undecided + counts.notEvaluated;
  const share = subjects > 0 ? ` (${counts.verified} of ${subjects})` : '';
  const suffix = note === null ? '' : `: ${note}`;
  const indent = VERDICT_CHARS + NAME_CHARS + 4;
  const row = wrapped(
    `${verdict.padEnd(VERDICT_CHARS)}  ${name.padEnd(NAME_CHARS)}  ${title}${share}${suffix}`,
    indent,
  );
  const sentences = findings.slice(0, FINDINGS_SHOWN_MAX).map(({ sentence }) => sentence);
  const more = findings.length - sentences.length + findingsLeftOut;
  if (more > 0) sentences.push(`and ${more} more; --json lists them`);
  return [
    paint(STYLES[verdict], row.slice(0, VERDICT_CHARS)) + row.slice(VERDICT_CHARS),
    ...sentences.map((sentence) => wrapped(' '.repeat(indent) + sentence, indent)),
  ];
}

function summary(chamber: ChamberReport, isVerbose: boolean): string {
  const { counts, checks, brokenEvents, unsignedMoves, logId, verdict } = chamber;
  const { verified, broken, undecided, notEvaluated, total } = counts;
  const open = undecided === 0 ? '' : `${undecided} undecided, `;
  const unsigned = unsignedMoves === 0 ? '' : ` Unsigned moves: ${unsignedMoves}.`;
  const sum = `${verified} verified, ${broken} broken, ${open}${notEvaluated} not evaluated of ${total} checks.${unsigned}`;
  const shown =
    brokenEvents.slice(0, EVENTS_SHOWN_MAX).join(', ') + (brokenEvents.length > EVENTS_SHOWN_MAX ? ' …' : '');
  const rows = [sum + (brokenEvents.length === 0 ? '' : ` Events named: ${shown}.`)];
  const names = checks.filter(({ verdict }) => verdict === 'not evaluated').map(({ name }) => name);
  if (names.length > 0 && !isVerbose) rows.push(`Not evaluated (--verbose shows why): ${names.join(', ')}.`);
  if (logId === null && verdict !== 'broken') rows.push(FILE_ALONE);
  return rows.map((row) => wrapped(row)).join('\n');
}

function count(number: number, noun: string): string {
  return `${withCommas(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** Breaks lines between words; does not split long words. */
function wrapped(text: string, indent = 0): string {
  const [, start = '', rest = ''] = /^(\s*)(.*)$/su.exec(visibleLine(text)) ?? [];
  const lines: string[] = [];
  let line = start;
  for (const [word] of rest.matchAll(/\S+ */g)) {
    if (line.trim() !== '' && (line + word).trimEnd().length > LINE_CHARS) {
      lines.push(line.trimEnd());
      line = ' '.repeat(indent);
    }
    line += word;
  }
  return [...lines, line.trimEnd()].join('\n');
}
