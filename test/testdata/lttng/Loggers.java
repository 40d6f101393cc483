// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.lttng.ust.agent.ILttngHandler;
import org.lttng.ust.agent.jul.LttngLogHandler;
import org.lttng.ust.agent.log4j.LttngLogAppender;

/**
 * Loggers LIBRARY: a program with LTTng's agent for a logging library, jul or log4j. It makes the
 * agent's handler, which waits for the session daemon, and says "ready". For each line on its
 * standard input it says one:
 *
 * <ul>
 *   <li>handler: how long the handler took to make, in microseconds, without the time to load
 *       libraries
 *   <li>attach NAME, detach NAME: gives the handler to a logger, or takes it away
 *   <li>log NAME TEXT: has a logger log a text for developers, and says whether it goes to the tracer
 * </ul>
 *
 * At the end of the input it ends.
 */
public final class Loggers {
    /** A logging library. */
    private interface Library {
        /** Makes the handler. */
        ILttngHandler handler() throws IOException;

        void attach(String name);

        void detach(String name);

        void log(String name, String text);
    }

    private static final class Jul implements Library {
        /** Or they would be collected. */
        private final Map<String, Logger> loggers = new HashMap<>();

        private LttngLogHandler handler;

        @Override
        public ILttngHandler handler() throws IOException {
            handler = new LttngLogHandler();
            return handler;
        }

        private Logger logger(String name) {
            return loggers.computeIfAbsent(name, Logger::getLogger);
        }

        @Override
        public void attach(String name) {
            logger(name).setLevel(Level.ALL);
            logger(name).setUseParentHandlers(false);
            logger(name).addHandler(handler);
        }

        @Override
        public void detach(String name) {
            logger(name).removeHandler(handler);
        }

        @Override
        public void log(String name, String text) {
            logger(name).fine(text);
        }
    }

    private static final class Log4j implements Library {
        private LttngLogAppender appender;

        @Override
        public ILttngHandler handler() throws IOException {
            appender = new LttngLogAppender();
            return appender;
        }

        private static org.apache.log4j.Logger logger(String name) {
            return org.apache.log4j.Logger.getLogger(name);
        }

        @Override
        public void attach(String name) {
            logger(name).setLevel(org.apache.log4j.Level.ALL);
            logger(name).setAdditivity(false);
            logger(name).addAppender(appender);
        }

        @Override
        public void detach(String name) {
            logger(name).removeAppender(appender);
        }

        @Override
        public void log(String name, String text) {
            logger(name).debug(text);
        }
    }

    private static String obey(Library library, ILttngHandler handler, String[] words) {
        switch (words[0]) {
            case "attach":
                library.attach(words[1]);
                return "attached";
            case "detach":
                library.detach(words[1]);
                return "detached";
            default:
                long before = handler.getEventCount();
                library.log(words[1], words[2]);
                return handler.getEventCount() > before ? "traced" : "not traced";
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("lttng-ust-context-jni");
        System.loadLibrary("lttng-ust-" + arguments[0] + "-jni");
        Library library = arguments[0].equals("jul") ? new Jul() : new Log4j();
        long begin = System.nanoTime();
        ILttngHandler handler = library.handler();
        long microseconds = (System.nanoTime() - begin) / 1000;
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(line.equals("handler") ? microseconds : obey(library, handler, line.split(" ", 3)));
        }
        // Not by way of the handler's end, which waits for seconds for the system's session daemon.
        Runtime.getRuntime().halt(0);
    }
}
