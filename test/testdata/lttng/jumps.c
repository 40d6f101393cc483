/* Copyright The Callbraid Authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Calls turn() a number of times. Each turn() calls these functions: risky(), after(), outer(), compare() by way of the
   library, on_signal() as a handler, and visit_a() by way of walk(). With the second argument 1, risky() does not
   return: the function below it jumps back to turn(). */

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#define FUNCTION __attribute__((noinline))

static jmp_buf back;
static volatile int sum;

FUNCTION void leaf(int n) { sum += n; }

/* The compiler inlines these two, if it optimises. */
static int inlined_twice(int n) { leaf(n); return n + 1; }
static int inlined(int n) { return inlined_twice(n) + inlined_twice(n + 1); }

FUNCTION void outer(int n) { sum += inlined(n); leaf(n); }

FUNCTION void deep(int n, int jump) {
	if (n > 0)
		deep(n - 1, jump);
	else if (jump)
		longjmp(back, 1);
	leaf(n);
}

FUNCTION void risky(int jump) { deep(3, jump); leaf(1); }

FUNCTION void after(void) { leaf(2); }

FUNCTION int compare(const void *a, const void *b) { leaf(3); return *(const int *)a - *(const int *)b; }

FUNCTION void on_signal(int number) { leaf(number); }

/* walk() is not instrumented, like a function of a library. helper() calls it again below itself, so visit_b() is entered
   from the place from which visit_a() was entered, and nothing has jumped. */
__attribute__((noinline, no_instrument_function)) static void walk(void (*visit)(void)) { visit(); sum++; }

FUNCTION void visit_b(void) { leaf(4); }

FUNCTION void helper(void) { walk(visit_b); leaf(5); }

FUNCTION void visit_a(void) { helper(); leaf(6); }

FUNCTION void turn(int jump) {
	int pair[] = {2, 1};
	if (setjmp(back) == 0)
		risky(jump);
	after();
	outer(1);
	qsort(pair, 2, sizeof pair[0], compare);
	raise(SIGUSR1);
	walk(visit_a);
}

int main(int argc, char **argv) {
	int turns = argc > 1 ? atoi(argv[1]) : 1, jump = argc > 2 ? atoi(argv[2]) : 0;
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < turns; i++)
		turn(jump);
	return 0;
}
