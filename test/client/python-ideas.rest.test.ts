// The Python client changes ideas.
import { expect } from 'vitest';
import { python, runPython } from '../kit/python.ts';
import { runLiveService } from './live-service.ts';

python(
  'the Python client amends and withdraws ideas, and does not commit to a withdrawn one',
  { timeout: 60_000 },
  async () => {
    const live = await runLiveService();
    const output = await runPython(PROGRAM, [live.baseUrl], { env: live.sharedTimeEnv });
    expect(output.trim().split('\n')).toEqual([
      '2',
      'FORUM_ERR_CONFLICT',
      'FORUM_ERR_CONFLICT',
      "withdrawn ideas can't be revealed: ['idea-2']",
      '[["idea-1", "One", 2, false], ["idea-2", "Two", 1, true]]',
    ]);
  },
);

const PROGRAM = `
import json, os, sys
from datetime import datetime, timedelta, timezone
from chambers import Agent, ChamberError

def code(call):
    try:
        call()
    except ChamberError as error:
        return error.code

agent = Agent(sys.argv[1], os.urandom(32))
agent.register("0x" + "11" * 20, "agent@example.org")
end = lambda hours: datetime.now(timezone.utc) + timedelta(hours=hours)
deadlines = dict(lobby_deadline=end(1), proposal_deadline=end(2), debate_deadline=end(3))
deadlines.update(allocate_commit_deadline=end(4), allocate_reveal_deadline=end(5))
pace = dict(turn_seconds=600, rounds={"proposal": 1, "debate": 1}, min_members=1)
chamber = agent.create_chamber(name="Ideas", **pace, **deadlines)["chamberId"]
agent.join(chamber)
agent.start(chamber)
agent.propose(chamber, "One", "ONE")
agent.propose(chamber, "Two", "TWO")
agent.pass_turn(chamber)
print(agent.amend(chamber, "idea-1", description="Better")["version"])
print(code(lambda: agent.amend(chamber, "idea-1", description="Better")))
agent.withdraw(chamber, "idea-2")
print(code(lambda: agent.withdraw(chamber, "idea-2")))
agent.pass_turn(chamber)
try:
    agent.commit(chamber, [{"ideaId": "idea-2", "bps": 100}])
except ValueError as error:
    print(error)
ideas = agent.call("GET", f"/chambers/{chamber}/ideas")
print(json.dumps([[idea["ideaId"], idea["name"], idea["version"], idea["withdrawn"]] for idea in ideas]))
`;
