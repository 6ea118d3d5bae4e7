import { resolve } from 'node:path';
import { type Duty, isProblem, reportText, type WatchReport } from '../client/watch-report.ts';
import { visibleJson, visibleLine } from '../vocabulary/visible.ts';
import { type CommandSpec, type Input, KEY_OPTION, SERVICE_OPTIONS } from './command.ts';
import { runForDuty } from './duty-command.ts';
import { agentOf, keyFileOf, untilInterrupted } from './environment.ts';
import { printNotice } from './output.ts';
import { toMillis, toOptionalInteger } from './values.ts';

const TIME_LIMIT = '10m';

export const watchCommand: CommandSpec = {
  name: 'watch',
  summary:
    "Reveals automatically, and runs a command for each of the agent's turns and commits that becomes due, until interrupted",
  options: {
    '--exec <command>':
      'shell command, which gets the todo item as JSON on standard input, and the variables CHAMBERS_CHAMBER and CHAMBERS_MUST (pass or commit)',
    '--time-limit <length>': `time after which the command and its children are killed, which counts as a failure (default: ${TIME_LIMIT})`,
    '--at-once <count>': 'maximum number of commands at once, one per chamber (default: 8)',
    ...SERVICE_OPTIONS,
    ...KEY_OPTION,
  },
  examples: ['watch', 'watch --exec=./act.sh', 'watch --exec=./act.sh --time-limit=90s --json'],
  run: watch,
};

async function watch(input: Input): Promise<void> {
  const { exec, 'time-limit': timeLimit = TIME_LIMIT, 'at-once': atOnce } = input.options;
  const [timeLimitMillis, atOnceMax] = [toMillis(timeLimit), toOptionalInteger('--at-once', atOnce)];
  const agent = await agentOf(input);
  const { baseUrl } = agent.forum.service;
  const env = { CHAMBERS_URL: baseUrl, CHAMBERS_KEY_FILE: resolve(keyFileOf(input)) };
  const printer = input.isJson ? jsonPrinter : textPrinter;
  const onDue = async (duty: Duty, { signal }: { readonly signal: AbortSignal }) => {
    printer.due(duty);
    if (exec === undefined) return;
    const onLine = (line: string, source: 'stdout' | 'stderr') => printer.line(duty, line, source);
    await runForDuty(duty, { command: exec, env, timeLimitMillis, signal, onLine });
    printer.done(duty);
  };
  printNotice(input.isJson, `watching for ${agent.did} at ${baseUrl}`);
  const options = { onDue, onReport: printer.report, ...(atOnceMax !== undefined && { atOnceMax }) };
  await untilInterrupted((signal) => agent.watch({ ...options, signal }));
}

interface Printer {
  due(duty: Duty): void;
  line(duty: Duty, line: string, source: 'stdout' | 'stderr'): void;
  done(duty: Duty): void;
  report(report: WatchReport): void;
}

/** Prints problems to standard error, and a command's output to the stream that the command wrote to. */
const textPrinter: Printer = {
  due: ({ chamberId, must, phase }) => console.log(`chamber ${chamberId}: ${must} is due in ${phase}`),
  line: ({ chamberId }, line, source) => {
    const labelled = `chamber ${chamberId} | ${visibleLine(line)}`;
    if (source === 'stdout') console.log(labelled);
    else console.error(labelled);
  },
  done: ({ chamberId, must }) => console.log(`chamber ${chamberId}: ${must} done`),
  report: (report) => {
    const text = visibleLine(reportText(report));
    if (isProblem(report)) console.error(text);
    else console.log(text);
  },
};

/** Prints everything to standard output, one object per line. */
const jsonPrinter: Printer = {
  due: ({ chamberId, must, phase }) => console.log(visibleJson({ type: 'due', chamberId, must, phase })),
  line: ({ chamberId, must }, text, source) =>
    console.log(visibleJson({ type: 'output', chamberId, must, source, text })),
  done: ({ chamberId, must }) => console.log(visibleJson({ type: 'done', chamberId, must })),
  report: (report) => console.log(visibleJson(jsonOf(report))),
};

function jsonOf(report: WatchReport): object {
  const detail = reportText(report);
  switch (report.type) {
    case 'revealed':
    case 'followed-again':
      return report;
    case 'duty-failed': {
      const { type, duty, retryMillis } = report;
      return { type, chamberId: duty.chamberId, must: duty.must, detail, retryMillis: Math.round(retryMillis) };
    }
    case 'not-revealed':
    case 'unrevealable':
      return { type: report.type, chamberId: report.chamberId, detail };
    case 'not-followed':
      return { type: report.type, detail };
    default:
      return report satisfies never;
  }
}
