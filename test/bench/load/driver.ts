// The load generator's process: runs the task that its parent sends, returns the measurements, and exits when it is disconnected.
import { driveFanout, type FanoutResult, type FanoutTask } from './fanout.ts';
import { driveIdle, type IdleResult, type IdleTask } from './idle.ts';
import { driveMoves, type MovesResult, type MovesTask } from './moves.ts';
import { driveProbe, INTERRUPT, type ProbeResult, type ProbeTask } from './probe.ts';
import { driveReplay, type ReplayResult, type ReplayTask } from './replay.ts';

export type Task = MovesTask | FanoutTask | ReplayTask | ProbeTask | IdleTask;
export interface Results {
  readonly moves: MovesResult;
  readonly fanout: FanoutResult;
  readonly replay: ReplayResult;
  readonly probe: ProbeResult;
  readonly idle: IdleResult;
}
export type Reply = { readonly result: Results[Task['kind']] } | { readonly error: string };

const interruption = new AbortController();

process.once('disconnect', () => process.exit(0));

process.once('message', async (task: Task) => {
  process.on('message', (message) => message === INTERRUPT && interruption.abort());
  const reply: Reply = await perform(task).then(
    (result) => ({ result }),
    (error: unknown) => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
  process.send?.(reply);
});

function perform(task: Task): Promise<Results[Task['kind']]> {
  switch (task.kind) {
    case 'moves':
      return driveMoves(task);
    case 'fanout':
      return driveFanout(task);
    case 'replay':
      return driveReplay(task);
    case 'probe':
      return driveProbe(task, interruption.signal);
    case 'idle':
      return driveIdle(task);
  }
}
