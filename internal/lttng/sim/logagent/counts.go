// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import "github.com/callbraid/callbraid/internal/lttng/lttngagent"

// counts is the number of Enable for each pattern or context.
type counts map[string]int

func (c counts) enable(key string) lttngagent.Code {
	c[key]++
	return lttngagent.Success
}

func (c counts) disable(key string) lttngagent.Code {
	if c[key] == 0 {
		return lttngagent.UnknownName
	}
	if c[key]--; c[key] == 0 {
		delete(c, key)
	}
	return lttngagent.Success
}
