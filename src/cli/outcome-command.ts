// `chambers outcome`: prints a chamber's outcome as tables, or as JSON with the service's bytes.
import { type OutcomeView, outcomeText } from '../../projections/outcome.ts';
import { paint } from '../process/terminal.ts';
import { shortAgent } from '../vocabulary/short.ts';
import { BPS_TOTAL } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { CHAMBER_ARGUMENT, type CommandSpec, type Input, SERVICE_OPTIONS } from './command.ts';
import { forumOf, interruptible } from './environment.ts';
import { CommandError, members, printBytes, table } from './output.ts';
import { toChamberId } from './values.ts';

export const outcomeCommand: CommandSpec = {
  name: 'outcome',
  summary: "Shows a chamber's outcome: allocations, graduates, tokens, root",
  args: CHAMBER_ARGUMENT,
  options: { '--wait': 'wait until the chamber is over and its tokens are deployed', ...SERVICE_OPTIONS },
  examples: ['outcome 1', 'outcome 1 --wait --json > outcome-1.json'],
  run: outcome,
};

async function outcome(input: Input): Promise<void> {
  const chamberId = toChamberId(input.args[0]);
  const wait = input.options['wait'] !== undefined;
  const interrupted = new CommandError('failure', 'interrupted');
  const view = await interruptible(interrupted, (signal) => forumOf(input).outcome(chamberId, { wait, signal }));
  if (input.isJson) printBytes(outcomeText(view));
  else console.log(forPeople(view).join('\n'));
}

function forPeople(view: OutcomeView): readonly string[] {
  const { chamberId, name, committed, revealed, abstainedBps, merkleRoot, committedTxHash, endedAt } = view;
  const share = (bps: number) => (revealed === 0 ? '–' : `${((100 * bps) / (BPS_TOTAL * revealed)).toFixed(1)} %`);
  const byShare = view.ideas.toSorted((one, other) => other.totalBps - one.totalBps);
  const ideas = byShare.map(({ ideaId, ticker, backers, totalBps, name, ...idea }) => [
    ideaId,
    ticker,
    idea.version,
    backers,
    totalBps,
    share(totalBps),
    idea.tokenAddress ?? (idea.graduated ? `none: ${idea.failure}` : null),
    name,
    idea.withdrawn ? 'withdrawn' : '',
  ]);
  const memberRows = view.members.map(({ did, label, wallet }, turn) => [turn, label ?? shortAgent(did), did, wallet]);
  return [
    paint('bold', visibleLine(`Chamber ${chamberId}: ${name}`)),
    `${committed} of ${view.members.length} members committed, ${revealed} revealed`,
    '',
    ...table(['IDEA', 'TICKER', 'VERSION', 'BACKERS', 'BPS', 'SHARE', 'TOKEN', 'NAME', ''], ideas, 'No ideas.'),
    '',
    ...table(['TURN', 'MEMBER', 'DID', 'WALLET'], memberRows, 'No members.'),
    '',
    ...members({ abstainedBps, merkleRoot, committedTxHash, endedAt }),
  ];
}
