// Makes again what follows from the lines: the derived tables and the tiles. All or nothing.
import { foldLog } from './fold.ts';
import { rebuildTiles } from './stored-tree.ts';
import { throwFault, type WritableLog } from './whole-log.ts';

export interface RebuildSummary {
  readonly chambers: number;
  readonly ideas: number;
}

/** Throws an Error of one line if a line is damaged, or lines were changed after they were published. */
export async function rebuild(log: WritableLog): Promise<RebuildSummary> {
  await log.holdAppends();
  await log.emptyDerivedTables();
  await foldLog(log, { into: 'stored', onFault: throwFault });
  await rebuildTiles(log);
  const counts = 'SELECT (SELECT count(*) FROM chambers) AS chambers, (SELECT count(*) FROM ideas) AS ideas';
  const [summary] = await log.query<RebuildSummary>(counts);
  await log.commit();
  return { chambers: summary?.chambers ?? 0, ideas: summary?.ideas ?? 0 };
}
