// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"sync/atomic"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

// counts are the registrations and commands of all agents by domain. They are safe for concurrent use.
type counts struct {
	registrations [domainCount]atomic.Int64
	commands      [domainCount][commandCount][session.ResultCount]atomic.Int64
}

// registration counts a registration.
func (c *counts) registration(domain lttngagent.Domain) { c.registrations[domain].Add(1) }

func (c *counts) command(domain lttngagent.Domain, command lttngagent.CommandType, r session.Result) {
	c.commands[domain][command][r].Add(1)
}
