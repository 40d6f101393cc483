// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// A program with the tracepoints of a ROS 2 node: it registers two callbacks, and calls the first one twice.

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "callbacks.h"

#include <stddef.h>

static void call(const void *callback)
{
	lttng_ust_tracepoint(ros2, callback_start, callback, 0);
	lttng_ust_tracepoint(ros2, callback_end, callback);
}

int main(void)
{
	const void *scan = (const void *)1001, *timer = (const void *)1002;

	lttng_ust_tracepoint(ros2, rclcpp_callback_register, scan, "on_scan");
	lttng_ust_tracepoint(ros2, rclcpp_callback_register, timer, "on_timer");
	call(scan);
	call(timer);
	call(scan);
	return 0;
}
