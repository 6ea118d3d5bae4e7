"""Preloaded into a program: sets its clock ahead by the milliseconds in a file, minus TEST_CLOCK_BEHIND."""

import os
import time

_real = time.time


def _moved() -> float:
    with open(os.environ["TEST_CLOCK_FILE"], encoding="utf-8") as file:
        return _real() + (int(file.read()) - int(os.environ.get("TEST_CLOCK_BEHIND", "0"))) / 1000


if "TEST_CLOCK_FILE" in os.environ:
    time.time = _moved
