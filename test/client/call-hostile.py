"""A program for the tests: makes one call of the client at a service; prints how it ended, and leaves the
most memory that it held, in KiB, in the file TEST_PEAK_FILE."""

import json
import os
import resource
import sys

from chambers import Agent, ChamberError, Limits

url, call, limits = sys.argv[1:]
agent = Agent(url, bytes([1]) * 32, patience=3, limits=Limits(**json.loads(limits)))


def drain(items):
    for _ in items:
        pass


CALLS = {
    "chambers": agent.chambers,
    "transcript": lambda: agent.transcript(1),
    "history": lambda: drain(agent.history(1)),
    "events": lambda: drain(agent.events(1)),
    "allEvents": lambda: drain(agent.all_events()),
    "todo": agent.todo,
    "pass": lambda: agent.pass_turn(1),
}

try:
    CALLS[call]()
    ending = "done"
except ChamberError as error:
    ending = error.code
print(ending)
with open(os.environ["TEST_PEAK_FILE"], "w", encoding="utf-8") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
