// Cross-checks phases and turns: an independent model must agree with every move of a log that the auditor calls sound.
import { askOracle, type OracleChamber, PHASES as PHASES_ASKED } from '../../projections/pace-oracle.ts';
import type { Line } from '../forge.ts';
import { payloadOf } from '../forgeries.ts';
import { isMove } from './histories.ts';

const [LOBBY, PROPOSAL, DEBATE, COMMIT, REVEAL] = PHASES_ASKED;
const PHASES_OF: Readonly<Record<string, readonly string[]>> = {
  'chamber.joined': [LOBBY],
  'chamber.admitted': [LOBBY],
  'chamber.started': [LOBBY],
  'chamber.proposed': [PROPOSAL],
  'chamber.debated': [DEBATE],
  'chamber.amended': [DEBATE],
  'chamber.withdrawn': [PROPOSAL, DEBATE],
  'chamber.passed': [PROPOSAL, DEBATE],
  'allocation.committed': [COMMIT],
  'allocation.revealed': [REVEAL],
};
const IN_TURN = ['chamber.proposed', 'chamber.debated', 'chamber.amended', 'chamber.withdrawn', 'chamber.passed'];

export interface Compared {
  readonly count: number;
  /** The model's objection. */
  readonly problem: string | undefined;
}

/** Compares each move; the first line is a creation. */
export function compareTurns(lines: readonly Line[]): Compared {
  const [creation, ...rest] = lines.filter(isMove);
  if (creation === undefined) return { count: 0, problem: undefined };
  const chamber = chamberOf(creation);
  const before: { ts: number; type: string; did: string }[] = [];
  let count = 0;
  for (const line of rest) {
    const [type, did, ts] = [String(line['type']), String(line['did']), Date.parse(String(line['ts']))];
    const { phase, holder, revealClosed } = askOracle(chamber, before, ts);
    const isInPhase = PHASES_OF[type]?.includes(phase) === true && !revealClosed;
    const isInTurn = !IN_TURN.includes(type) || holder === did;
    count++;
    if (!isInPhase || !isInTurn)
      return {
        count,
        problem: `event ${before.length + 2} (${type} by ${did}) is in ${phase}, in the turn of ${holder}`,
      };
    before.push({ ts, type, did });
  }
  return { count, problem: undefined };
}

function chamberOf(creation: Line): OracleChamber {
  const { deadlines, turnSeconds, rounds, maxMembers } = payloadOf(creation);
  const names = ['lobby', 'proposal', 'debate', 'allocateCommit', 'allocateReveal'];
  return {
    createdAt: Date.parse(String(creation['ts'])),
    deadlines: names.map((name) => Date.parse(String((deadlines as Line)[`${name}Deadline`]))),
    turnSeconds: (turnSeconds ?? undefined) as number | undefined,
    rounds: rounds as OracleChamber['rounds'],
    maxMembers: maxMembers as number | undefined,
  };
}
