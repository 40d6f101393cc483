# Copyright The Callbraid Authors
# SPDX-License-Identifier: Apache-2.0

"""shop [ORDERS]: a program to trace. It takes 20 orders, or as many as it is told, of which every
seventh fails, and says so by its logger."""

import logging
import sys
import time

import lttngust  # gives the root logger LTTng's handler, where a daemon is found

logger = logging.getLogger("com.example.shop")
logger.setLevel(logging.DEBUG)

logger.info("open")
for order in range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 20)):
    logger.debug("order %d costs %d EUR", order, 10 * order)
    if order % 7 == 0:
        logger.warning("order %d failed: sold out", order)
    time.sleep(0.001 * (order % 4))
logger.info("closed")
