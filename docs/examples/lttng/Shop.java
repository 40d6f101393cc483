// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import java.util.logging.Level;
import java.util.logging.Logger;
import org.lttng.ust.agent.jul.LttngLogHandler;

/**
 * Shop [ORDERS]: a program to trace. It takes 20 orders, or as many as it is told, of which every
 * seventh fails, and says so by its logger.
 */
public final class Shop {
    private static final Logger LOGGER = Logger.getLogger("com.example.shop");
    private static final String CLASS = Shop.class.getName();

    public static void main(String[] arguments) throws Exception {
        int orders = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 20;
        // What the program logs goes to LTTng, whatever its level: what is recorded is said there.
        LttngLogHandler handler = new LttngLogHandler();
        LOGGER.addHandler(handler);
        LOGGER.setLevel(Level.ALL);
        LOGGER.info("open");
        for (int order = 1; order <= orders; order++) {
            try {
                takeOrder(order);
            } catch (IllegalStateException e) {
                LOGGER.log(Level.WARNING, "order {0} failed: {1}", new Object[] {order, e.getMessage()});
            }
        }
        LOGGER.info("closed");
        handler.close();
    }

    private static void takeOrder(int order) throws InterruptedException {
        LOGGER.entering(CLASS, "takeOrder", order);
        int euros = price(order);
        if (order % 7 == 0) {
            IllegalStateException e = new IllegalStateException("sold out");
            LOGGER.throwing(CLASS, "takeOrder", e);
            throw e;
        }
        LOGGER.exiting(CLASS, "takeOrder", euros);
    }

    private static int price(int order) throws InterruptedException {
        LOGGER.entering(CLASS, "price", order);
        Thread.sleep(order % 4);
        int euros = 10 * order;
        LOGGER.log(Level.FINE, "order {0} costs {1} EUR", new Object[] {order, euros});
        LOGGER.exiting(CLASS, "price", euros);
        return euros;
    }
}
