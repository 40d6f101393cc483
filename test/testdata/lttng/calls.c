// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// calls TRUTH THREADS ROUNDS DEPTH EFFORT: a program to trace, built with
// -finstrument-functions. It says "ready" when it is in main. For each line on its
// standard input it starts THREADS threads, which call a tree of functions DEPTH deep
// ROUNDS times, and says "done". With 0 THREADS main calls the trees itself. At the end
// of the input it returns from main.
//
// It keeps a record of its own of all calls, and writes it to the file TRUTH when it
// ends: a line for each entry and each exit, in the order of their thread, with
//
//	thread ID, ">" for an entry or "<" for an exit, function, monotonic time in ns
//
// An entry is noted behind the tracer's, an exit before the tracer's: the tracer's
// event lies between that note and the one before, or after, of the thread.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define UNTRACED __attribute__((no_instrument_function))

struct note {
	const char *function;
	long long time;
	char what;
};

struct notes {
	pid_t thread;
	struct note *notes;
	size_t count, room;
	struct notes *next;
};

static struct notes *first, **last = &first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct notes *mine;
static const char *truth;
static int threads, rounds, depth, effort;

static UNTRACED void *must(void *p)
{
	if (!p) {
		perror("memory");
		abort();
	}
	return p;
}

static UNTRACED void note(char what, const char *function)
{
	struct timespec now;

	if (!mine) {
		mine = must(calloc(1, sizeof *mine));
		mine->thread = gettid();
		pthread_mutex_lock(&lock);
		*last = mine;
		last = &mine->next;
		pthread_mutex_unlock(&lock);
	}
	if (mine->count == mine->room) {
		mine->room = mine->room ? 2 * mine->room : 1024;
		mine->notes = must(realloc(mine->notes, mine->room * sizeof *mine->notes));
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	mine->notes[mine->count++] = (struct note){ function, now.tv_sec * 1000000000LL + now.tv_nsec, what };
}

#define ENTER note('>', __func__)
#define LEAVE note('<', __func__)

static UNTRACED __attribute__((destructor)) void tell(void)
{
	FILE *file = truth ? must(fopen(truth, "w")) : NULL;

	for (struct notes *t = first; file && t; t = t->next)
		for (size_t i = 0; i < t->count; i++)
			fprintf(file, "%d %c %s %lld\n", t->thread, t->notes[i].what, t->notes[i].function, t->notes[i].time);
	if (file && fclose(file)) {
		perror(truth);
		abort();
	}
}

static int leaf(int n)
{
	ENTER;
	for (volatile int i = 0; i < effort; i++)
		;
	LEAVE;
	return n + 1;
}

static int tree(int below);

static int left(int below)
{
	ENTER;
	int sum = tree(below - 1);
	LEAVE;
	return sum;
}

static int right(int below)
{
	ENTER;
	int sum = leaf(below) + tree(below - 1);
	LEAVE;
	return sum;
}

static int tree(int below)
{
	ENTER;
	int sum = leaf(below);
	if (below > 0)
		sum += left(below) + right(below);
	LEAVE;
	return sum;
}

static void *work(void *unused)
{
	ENTER;
	for (int i = 0; i < rounds; i++)
		tree(depth);
	LEAVE;
	return unused;
}

int main(int argc, char **argv)
{
	ENTER;
	if (argc != 6) {
		fprintf(stderr, "usage: calls TRUTH THREADS ROUNDS DEPTH EFFORT\n");
		return 2;
	}
	truth = argv[1];
	threads = atoi(argv[2]);
	rounds = atoi(argv[3]);
	depth = atoi(argv[4]);
	effort = atoi(argv[5]);
	pthread_t *ids = must(calloc(threads + 1, sizeof *ids));
	puts("ready");
	fflush(stdout);
	for (char line[80]; fgets(line, sizeof line, stdin);) {
		for (int i = 0; i < threads; i++)
			if (pthread_create(&ids[i], NULL, work, NULL))
				abort();
		if (!threads)
			work(NULL);
		for (int i = 0; i < threads; i++)
			if (pthread_join(ids[i], NULL))
				abort();
		puts("done");
		fflush(stdout);
	}
	LEAVE;
	return 0;
}
