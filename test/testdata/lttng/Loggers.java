// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.lttng.ust.agent.jul.LttngLogHandler;

/**
 * Loggers: a program with LTTng's agent for java.util.logging. It makes the agent's handler, which
 * waits for the session daemon, and says "ready". For each line on its standard input it says one:
 *
 * <ul>
 *   <li>handler: how long the handler took to make, in microseconds, without the time to load
 *       libraries
 *   <li>attach NAME, detach NAME: gives the handler to a logger, or takes it away
 *   <li>log NAME TEXT: has a logger log a text at level FINE, and says whether it goes to the tracer
 * </ul>
 *
 * At the end of the input it ends.
 */
public final class Loggers {
    private static final Map<String, Logger> ALL = new HashMap<>();

    private static String obey(LttngLogHandler handler, String[] words) {
        Logger logger = ALL.computeIfAbsent(words[1], Logger::getLogger);
        switch (words[0]) {
            case "attach":
                logger.setLevel(Level.ALL);
                logger.setUseParentHandlers(false);
                logger.addHandler(handler);
                return "attached";
            case "detach":
                logger.removeHandler(handler);
                return "detached";
            default:
                long before = handler.getEventCount();
                logger.log(Level.FINE, words[2]);
                return handler.getEventCount() > before ? "traced" : "not traced";
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("lttng-ust-context-jni");
        System.loadLibrary("lttng-ust-jul-jni");
        long begin = System.nanoTime();
        LttngLogHandler handler = new LttngLogHandler();
        long microseconds = (System.nanoTime() - begin) / 1000;
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(line.equals("handler") ? microseconds : obey(handler, line.split(" ", 3)));
        }
        // Not by way of the handler's end, which waits for seconds for the system's session daemon.
        Runtime.getRuntime().halt(0);
    }
}
