// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Tracepoints with the names and fields of those in ROS 2.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ros2

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "callbacks.h"

#if !defined(CALLBACKS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define CALLBACKS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_callback_register,
	LTTNG_UST_TP_ARGS(const void *, number, const char *, function),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer_hex(const void *, callback, number)
		lttng_ust_field_string(symbol, function)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_start,
	LTTNG_UST_TP_ARGS(const void *, number, int, within),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer_hex(const void *, callback, number)
		lttng_ust_field_integer(int, is_intra_process, within)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_end,
	LTTNG_UST_TP_ARGS(const void *, number),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer_hex(const void *, callback, number)))

#endif

#include <lttng/tracepoint-event.h>
