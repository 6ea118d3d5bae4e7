// A log whose corruption is never taken for the failure of one request: whoever meets it, the process is told to stop.
import { LogCorruption, toLogError } from './failures.ts';
import type { ForumLog } from './log.ts';

export function guardLog(log: ForumLog, onCorruption: (error: LogCorruption) => void): ForumLog {
  function judge(error: unknown): unknown {
    const judged = toLogError(error);
    if (judged instanceof LogCorruption) onCorruption(judged);
    return judged;
  }

  function guard<Args extends unknown[], Result>(method: (...args: Args) => Promise<Result>) {
    return async (...args: Args): Promise<Result> => {
      try {
        return await method.apply(log, args);
      } catch (error) {
        throw judge(error);
      }
    };
  }

  return {
    logId: log.logId,
    get lastAt() {
      return log.lastAt;
    },
    get lastChamberId() {
      return log.lastChamberId;
    },
    append: guard(log.append),
    findBySignature: guard(log.findBySignature),
    readPage: guard(log.readPage),
    lastEventId: guard(log.lastEventId),
    readNodes: guard(log.readNodes),
    operatorEmail: guard(log.operatorEmail),
    listChambers: guard(log.listChambers),
    listGraduatedIdeas: guard(log.listGraduatedIdeas),
    findIdea: guard(log.findIdea),
    listUnsettled: guard(log.listUnsettled),
    listSettled: guard(log.listSettled),
    countOpenChambers: guard(log.countOpenChambers),
    recall: (name) => log.recall(name),
    remember: (name, value) => log.remember(name, value),
    noteTime: guard(log.noteTime),
    close: () => log.close(),
  };
}
