import type { Mirror, MirrorStep } from '../mirror/mirror.ts';
import { backoffMillis, pause } from '../reading/waiting.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import type { CommandSpec, Input } from './command.ts';
import { interruptible, patienceOf } from './environment.ts';
import { CommandError, EXIT, print, printMembers, printNotice } from './output.ts';

const POLL_MS = 2_000;
/** The exit code, the same as for `audit`. */
const UNDECIDED = 4;

export const mirrorCommand: CommandSpec = {
  name: 'mirror',
  summary: "Follows a service's log, verifies all of it and stores it in a folder; stops at an inconsistency",
  args: {
    '<url>': 'the base URL of the service',
    '<folder>': 'where to store lines, tiles and checkpoint; an existing mirror is resumed; only one mirror may use it',
  },
  options: {
    '--key <vkey>': 'the verifier key of the log (default: trust the key that the service names)',
    '--allow-unpublished': 'accept accounts that begin with lines that releases before schema 4 did not publish',
    '--keep': 'keep the original of each line whose text the service withholds, in originals/ in the folder',
    '--once': 'exit when the folder has everything that the newest checkpoint covers',
    '--patience <length>':
      'with --once: how long to retry while the service is unreachable, e.g. 60s (default: no retry)',
  },
  exitCodes: [
    "3  the service contradicts the folder, or its lines do not match its log's entries: see inconsistent-….json in the folder",
    '4  undecided: entries without a line may come from a release before schema 4, see --allow-unpublished',
    '5  the service now has another log; the folder is unchanged',
    '6  with --once: the service is unreachable',
  ],
  examples: ['mirror https://chambers.example.org mirror/', 'mirror http://127.0.0.1:8787 mirror/ --once --json'],
  run: mirror,
};

async function mirror(input: Input): Promise<number> {
  const { args, options, isJson } = input;
  const [url = '', folder = ''] = args;
  const { key, once } = options;
  const until = performance.now() + (patienceOf(input) ?? 0);
  const allowUnpublished = options['allow-unpublished'] !== undefined;
  const { Undecided } = await import('../mirror/line-finder.ts');
  const { AnotherLog, Inconsistent, Mirror } = await import('../mirror/mirror.ts');
  const { NotServed } = await import('../mirror/published-log.ts');
  const interrupted = new Error('interrupted');
  return interruptible(interrupted, async (signal) => {
    const keepsOriginals = options['keep'] !== undefined;
    const opened = await Mirror.open({ url, folder, key, signal, allowUnpublished, keepsOriginals });
    if (opened.damage !== undefined) printNotice(isJson, opened.damage);
    try {
      return await follow(opened, signal);
    } catch (error) {
      if (signal.aborted) return EXIT.ok;
      if (error instanceof AnotherLog) throw new CommandError('conflict', error.message);
      if (error instanceof Undecided) {
        print(isJson, { undecided: error.message }, [visibleLine(`UNDECIDED: ${error.message}`)]);
        return UNDECIDED;
      }
      if (!(error instanceof Inconsistent)) throw error;
      const { message: problem, file } = error;
      print(isJson, { inconsistent: problem, file }, [visibleLine(`INCONSISTENT: ${problem}`)]);
      return EXIT.verification;
    } finally {
      await opened.close();
    }
  });

  async function follow(opened: Mirror, signal: AbortSignal): Promise<number> {
    for (let failures = 0; ; ) {
      const step = await opened.step().catch((error: unknown) => {
        if (!(error instanceof NotServed) || signal.aborted) throw error;
        if (once !== undefined && performance.now() >= until) throw new CommandError('unreachable', error.message);
        printNotice(isJson, error.message);
      });
      if (step !== undefined) report(step);
      if (once !== undefined && step !== undefined) return EXIT.ok;
      failures = step === undefined ? failures + 1 : 0;
      await pause(step === undefined ? backoffMillis(failures) : POLL_MS, signal);
    }
  }

  function report(step: MirrorStep): void {
    if (step.added > 0 || step.withheld !== undefined || once !== undefined) printMembers(isJson, step);
  }
}
