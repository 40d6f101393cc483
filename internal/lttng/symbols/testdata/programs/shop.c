/* Copyright The Callbraid Authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A shared object; "where" says where it and its functions lie in this process. */

#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) int shop_pay(int n) { return n * 3; }
__attribute__((noinline)) static int shop_check(int n) { return n + 1; }
int shop_order(int n) { return shop_pay(n) + shop_check(n); }

static int object(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		/* The base as LTTng tells it: of the first loadable segment. */
		const char *name = info->dlpi_name[0] ? info->dlpi_name : data;
		printf("object %#lx %s\n", (unsigned long)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), name);
		break;
	}
	return 0;
}

void where(const char *program)
{
	dl_iterate_phdr(object, (void *)program);
	printf("function %p shop_pay\n", (void *)shop_pay);
	printf("function %p shop_check\n", (void *)shop_check);
	printf("function %p shop_order\n", (void *)shop_order);
	printf("function %p where\n", (void *)where);
}
