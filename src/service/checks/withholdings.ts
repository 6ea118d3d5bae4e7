// The list of texts to withhold. A start does not check it: the service goes on without what it can't apply, and logs it.
import { readWithholdList } from '../../withholding/list.ts';
import { type Check, reasonOf } from './check.ts';
import { ok, problem } from './finding.ts';

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
    return [problem('configuration', reasonOf(error), { variable })];
  }
};
