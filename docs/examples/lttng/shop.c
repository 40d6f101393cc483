// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// shop: a program to trace. It takes 20 orders on each of two threads, and ends.
//
//	gcc -finstrument-functions -g -pthread -o shop shop.c
//	LD_PRELOAD=liblttng-ust-cyg-profile.so ./shop

#include <pthread.h>
#include <unistd.h>

enum { ORDERS = 20 };

static void price(int order)
{
	usleep(1000 * (order % 4));
}

static void reserve(int order)
{
	usleep(500);
	if (order % 5 == 0)
		reserve(order + 1);
}

static void take_order(int order)
{
	price(order);
	reserve(order);
}

static void *take_orders(void *unused)
{
	for (int order = 0; order < ORDERS; order++)
		take_order(order);
	return unused;
}

int main(void)
{
	pthread_t north, south;

	if (pthread_create(&north, NULL, take_orders, NULL) || pthread_create(&south, NULL, take_orders, NULL))
		return 1;
	pthread_join(north, NULL);
	pthread_join(south, NULL);
	return 0;
}
