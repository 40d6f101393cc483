// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Makes short calls in two threads at full speed, and counts them itself. Each line of its input is a number of requests that
 * each thread handles. Then the program prints the time in nanoseconds, the number of calls so far by function, and "done".
 */
public final class Work extends Thread {
	private static final int THREADS = 2, STEPS = 8, LEAVES = 4, FAILURES_EVERY = 64;

	private final int number;
	private long requests, steps, leaves, failures, sum;

	private Work(int number) {
		this.number = number;
	}

	@Override
	public void run() {
		for (int i = 0; i < number; i++) {
			request(i);
		}
	}

	private void request(int i) {
		requests++;
		for (int j = 0; j < STEPS; j++) {
			step(j);
		}
		if (i % FAILURES_EVERY == 0) {
			try {
				fail();
			} catch (IllegalStateException expected) {
				sum++;
			}
		}
	}

	private void step(int j) {
		steps++;
		for (int k = 0; k < LEAVES; k++) {
			sum += leaf(j + k);
		}
	}

	private long leaf(int k) {
		leaves++;
		return k;
	}

	private void fail() {
		failures++;
		throw new IllegalStateException("on purpose");
	}

	public static void main(String[] arguments) throws Exception {
		BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
		long runs = 0, requests = 0, steps = 0, leaves = 0, failures = 0;
		for (String line = input.readLine(); line != null; line = input.readLine()) {
			Work[] threads = new Work[THREADS];
			for (int i = 0; i < THREADS; i++) {
				threads[i] = new Work(Integer.parseInt(line));
			}
			long began = System.nanoTime();
			for (Work w : threads) {
				w.start();
			}
			for (Work w : threads) {
				w.join();
			}
			System.out.println("took " + (System.nanoTime() - began));
			for (Work w : threads) {
				runs++;
				requests += w.requests;
				steps += w.steps;
				leaves += w.leaves;
				failures += w.failures;
			}
			System.out.println("Work.run " + runs);
			System.out.println("Work.request " + requests);
			System.out.println("Work.step " + steps);
			System.out.println("Work.leaf " + leaves);
			System.out.println("Work.fail " + failures);
			System.out.println("Work.<init> " + runs);
			System.out.println("done");
		}
	}
}
