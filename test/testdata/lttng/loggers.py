# Copyright The Callbraid Authors
# SPDX-License-Identifier: Apache-2.0

"""A program with LTTng's agent for Python's logging, as Loggers.java is one in Java."""

import logging
import sys
import time

begin = time.monotonic()
import lttngust  # waits for the session daemon
import lttngust.loghandler

microseconds = int((time.monotonic() - begin) * 1e6)


def obey(words):
    if words[0] == "handler":
        return microseconds
    logger = logging.getLogger(words[1])
    if words[0] == "attach":
        return "attached"
    if words[0] == "detach":
        return "cannot be"
    handlers = logging.getLogger().handlers
    traced = any(isinstance(h, lttngust.loghandler._Handler) for h in handlers)
    logger.info(words[2])
    return "traced" if traced else "not traced"


print("ready")
for line in sys.stdin:
    print(obey(line.rstrip("\n").split(" ", 2)))
