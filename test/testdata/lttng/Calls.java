// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.lttng.ust.agent.jul.LttngLogHandler;

/**
 * Calls TRUTH THREADS ROUNDS DEPTH: a program that logs its calls by java.util.logging. It says
 * "ready" when its records go to the tracer. For each line on its standard input it starts THREADS
 * threads, which call a tree of methods DEPTH deep ROUNDS times, and says "done". At the end of the
 * input it ends.
 *
 * <p>It keeps a record of its own of all calls, and writes it to the file TRUTH when it ends: a line
 * for each, in the order of their thread, with the thread's name, ">" for an entry, "<" for a
 * return, "!" for an exception that leaves the method or "-" for another record, and the method, or
 * the record's text.
 */
public final class Calls {
    private static final Logger LOGGER = Logger.getLogger("test.calls");
    private static final String CLASS = Calls.class.getName();

    private static final List<Calls> ALL = new ArrayList<>();

    private final String thread;
    private final int rounds;
    private final int depth;
    private final List<String> notes = new ArrayList<>();

    private Calls(String thread, int rounds, int depth) {
        this.thread = thread;
        this.rounds = rounds;
        this.depth = depth;
    }

    private void enter(String method, Object argument) {
        notes.add("> Calls." + method);
        LOGGER.entering(CLASS, method, argument);
    }

    private int leave(String method, int result) {
        notes.add("< Calls." + method);
        LOGGER.exiting(CLASS, method, result);
        return result;
    }

    private void work() {
        enter("work", rounds);
        for (int i = 0; i < rounds; i++) {
            tree(depth);
            try {
                refuse(i);
            } catch (IllegalStateException e) {
                notes.add("- refused");
                LOGGER.logp(Level.WARNING, CLASS, "work", "refused");
            }
        }
        leave("work", rounds);
    }

    private int tree(int below) {
        enter("tree", below);
        int sum = below == 0 ? leaf(below) : tree(below - 1) + leaf(below) + tree(below - 1);
        return leave("tree", sum);
    }

    private int leaf(int n) {
        enter("leaf", n);
        return leave("leaf", n + 1);
    }

    private void refuse(int n) {
        enter("refuse", n);
        leaf(n);
        IllegalStateException e = new IllegalStateException("no");
        notes.add("! Calls.refuse");
        LOGGER.throwing(CLASS, "refuse", e);
        throw e;
    }

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[1]);
        LOGGER.setLevel(Level.ALL);
        LOGGER.setUseParentHandlers(false);
        LOGGER.addHandler(new LttngLogHandler());
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            List<Thread> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                Calls calls = new Calls("worker-" + ALL.size(), Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
                ALL.add(calls);
                running.add(new Thread(calls::work, calls.thread));
            }
            for (Thread thread : running) {
                thread.start();
            }
            for (Thread thread : running) {
                thread.join();
            }
            System.out.println("done");
        }
        try (PrintWriter truth = new PrintWriter(arguments[0])) {
            for (Calls calls : ALL) {
                for (String note : calls.notes) {
                    truth.println(calls.thread + " " + note);
                }
            }
        }
        // Not by way of the handler's end, which waits for seconds for the system's session daemon.
        Runtime.getRuntime().halt(0);
    }
}
