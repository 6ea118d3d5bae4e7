// `chambers mirror`: keeps a verified copy of all that a service publishes.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Mirror, MirrorStep } from '../mirror/mirror.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import type { CommandSpec, Input } from './command.ts';
import { interruptible } from './environment.ts';
import { CommandError, EXIT, print, printMembers, printNotice } from './output.ts';

const POLL_MS = 2_000;
const RETRY_MS = 5_000;
/** As of an audit. */
const UNDECIDED = 4;

export const mirrorCommand: CommandSpec = {
  name: 'mirror',
  summary: 'Follows the log of a service, verifies all of it and keeps it in a folder; stops at what is inconsistent',
  args: {
    '<url>': 'the base URL of the service',
    '<folder>': 'where to keep lines, tiles and checkpoint, for one mirror at a time; resumed if it exists',
  },
  options: {
    '--key <vkey>': 'the verifier key of the log; without it, the key that the service names is trusted',
    '--allow-unpublished': 'accounts may begin with lines that releases before schema 4 did not publish',
    '--once': 'end when the folder has everything under the newest checkpoint',
  },
  exitCodes: [
    '3  the service contradicts what the folder holds, no line explains an entry of its log, or a line lacks one: kept in a file inconsistent-….json',
    '4  undecided: entries without a line may be of a release before schema 4, see --allow-unpublished',
    '5  the service has another log now: the folder keeps what it has',
    '6  with --once: the service is unreachable',
  ],
  examples: ['mirror https://chambers.example.org mirror/', 'mirror http://127.0.0.1:8787 mirror/ --once --json'],
  run: mirror,
};

async function mirror({ args: [url = '', folder = ''], options, isJson }: Input): Promise<number> {
  const { key, once } = options;
  const allowUnpublished = options['allow-unpublished'] !== undefined;
  const { Undecided } = await import('../mirror/line-finder.ts');
  const { AnotherLog, Inconsistent, Mirror } = await import('../mirror/mirror.ts');
  const { NotServed } = await import('../mirror/published-log.ts');
  const interrupted = new Error('interrupted');
  return interruptible(interrupted, async (signal) => {
    const opened = await Mirror.open({ url, folder, key, signal, allowUnpublished });
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
    for (;;) {
      const step = await opened.step().catch((error: unknown) => {
        if (!(error instanceof NotServed) || signal.aborted) throw error;
        if (once !== undefined) throw new CommandError('unreachable', error.message);
        printNotice(isJson, error.message);
      });
      if (step !== undefined) report(step);
      if (once !== undefined) return EXIT.ok;
      await sleep(step === undefined ? RETRY_MS : POLL_MS, undefined, { signal });
    }
  }

  function report(step: MirrorStep): void {
    if (step.added > 0 || once !== undefined) printMembers(isJson, step);
  }
}
