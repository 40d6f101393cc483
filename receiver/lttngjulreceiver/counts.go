// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// counts are registrations and commands of all agents by domain. They are for many goroutines.
type counts struct {
	registrations [domainCount]atomic.Int64
	commands      [domainCount][commandCount][resultCount]atomic.Int64
}

// registered counts a registration. The domain is one of the protocol's.
func (c *counts) registered(domain lttngagent.Domain) { c.registrations[domain].Add(1) }

func (c *counts) command(domain lttngagent.Domain, command lttngagent.CommandType, r result) {
	c.commands[domain][command][r].Add(1)
}
