// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Sells in two threads, and counts its own calls. Arthas traces it. These are the lines of its input:
 *
 * <ul>
 * <li>"sell RATE" begins to sell: so many calls of buy in a second, over both threads.
 * <li>"rest" ends it. When the answer arrives, no call runs.
 * <li>"burn SECONDS" uses one thread's CPU in the method spin.
 * <li>"time" measures a call of the method quick.
 * <li>"counts" has no effect.
 * </ul>
 *
 * It answers each line with the number of calls and of exceptions by method, and then "done". The answer of "time" begins
 * with the nanoseconds of a call, and that of "burn" with the nanoseconds of CPU that spin used.
 */
public final class Shop {
	private static final int THREADS = 2, FAILS_EVERY = 5;

	private static final class Count {
		final AtomicLong calls = new AtomicLong(), failures = new AtomicLong();
	}

	private static final Count BUY = new Count(), PRICE = new Count(), CHARGE = new Count();
	private static volatile double pause = -1;
	private static final AtomicLong resting = new AtomicLong();
	private static long sum;

	/** The number of the call of buy that a thread makes, as a tracer of the program would keep the IDs of its span. */
	private static final ThreadLocal<Long> current = new ThreadLocal<>();

	/** Returns the ID of the trace of the calling thread, or null if it makes no call of buy. An expression of Arthas uses it. */
	static String traceID() {
		return current.get() == null ? null : String.format("%016x%016x", 0xa11cel, current.get());
	}

	static String spanID() {
		return current.get() == null ? null : String.format("%016x", current.get());
	}

	/** Buys one thing: the price of three parts, then the payment, which sometimes fails. */
	int buy(long number) {
		BUY.calls.incrementAndGet();
		int total = 0;
		for (int i = 0; i < 3; i++) {
			total += price(i);
		}
		try {
			return total + charge(number);
		} catch (IllegalStateException e) {
			BUY.failures.incrementAndGet();
			throw e;
		}
	}

	int price(int part) {
		PRICE.calls.incrementAndGet();
		LockSupport.parkNanos(100_000);
		return part;
	}

	int charge(long number) {
		CHARGE.calls.incrementAndGet();
		LockSupport.parkNanos(200_000);
		if (number % FAILS_EVERY == 0) {
			CHARGE.failures.incrementAndGet();
			throw new IllegalStateException("declined");
		}
		return 1;
	}

	/** Takes a nanosecond. */
	int quick(int i) {
		return i + 1;
	}

	long spin(long until) {
		long n = 0;
		while (System.nanoTime() < until) {
			n++;
		}
		return n;
	}

	private void sell() {
		for (long number = 1;; number++) {
			double between = pause;
			if (between < 0) {
				resting.incrementAndGet();
				while ((between = pause) < 0) {
					LockSupport.parkNanos(20_000_000);
				}
			}
			long began = System.nanoTime();
			current.set(number);
			try {
				sum += buy(number);
			} catch (IllegalStateException expected) {
				sum++;
			}
			LockSupport.parkNanos((long) between - (System.nanoTime() - began));
		}
	}

	private static final int BATCH = 2_000_000, BATCHES = 9;

	/** Returns the nanoseconds of a call of quick: the shortest mean of some batches. */
	private double time() {
		double shortest = Double.MAX_VALUE;
		for (int i = 0; i < BATCHES; i++) {
			long began = System.nanoTime();
			int n = (int) began;
			for (int j = 0; j < BATCH; j++) {
				n = quick(n) * 31;
			}
			shortest = Math.min(shortest, (System.nanoTime() - began) / (double) BATCH);
			sum += n;
		}
		return shortest;
	}

	private static void print(String method, Count of) {
		System.out.println("demo.Shop." + method + " " + of.calls + " " + of.failures);
	}

	public static void main(String[] arguments) throws Exception {
		Shop shop = new Shop();
		for (int i = 0; i < THREADS; i++) {
			Thread t = new Thread(shop::sell, "seller-" + i);
			t.setDaemon(true);
			t.start();
		}
		java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
		BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
		for (String line = input.readLine(); line != null; line = input.readLine()) {
			String[] words = line.split(" ");
			switch (words[0]) {
				case "sell":
					resting.set(0);
					pause = 1e9 * THREADS / Double.parseDouble(words[1]);
					break;
				case "rest":
					pause = -1;
					while (resting.get() < THREADS) {
						Thread.sleep(1);
					}
					break;
				case "burn":
					long before = threads.getCurrentThreadCpuTime();
					sum += shop.spin(System.nanoTime() + (long) (Double.parseDouble(words[1]) * 1e9));
					System.out.println("took " + (threads.getCurrentThreadCpuTime() - before));
					break;
				case "time":
					System.out.println("took " + shop.time());
					break;
				default:
			}
			print("buy", BUY);
			print("price", PRICE);
			print("charge", CHARGE);
			System.out.println("done");
		}
		System.exit(sum == 0 ? 1 : 0);
	}
}
