// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import java.util.logging.Level;
import java.util.logging.Logger;
import org.lttng.ust.agent.jul.LttngLogHandler;

/** Logs texts whose modified UTF-8 is not UTF-8, in loggers and methods whose names differ only in them. */
public class Texts {
    public static void main(String[] arguments) throws Exception {
        LttngLogHandler handler = new LttngLogHandler();
        for (String face : new String[] {"\uD83D\uDE00", "\uD83D\uDE1F"}) {
            Logger logger = Logger.getLogger("shop." + face);
            logger.setLevel(Level.ALL);
            logger.addHandler(handler);
            logger.info("sold " + face + "\0h\u00E9");
            logger.entering("Shop" + face, "buy", face);
            logger.exiting("Shop" + face, "buy", face);
        }
        handler.close();
    }
}
