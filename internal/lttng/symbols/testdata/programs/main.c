/* Copyright The Callbraid Authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

int shop_order(int n);
void where(const char *program);

__attribute__((noinline)) static int own(int n) { return n * 7; }

int main(int argc, char **argv)
{
	(void)argc;
	where(argv[0]);
	printf("function %p main\n", (void *)main);
	printf("function %p own\n", (void *)own);
	return shop_order(own(2)) == 0;
}
