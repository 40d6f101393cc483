// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.opentelemetry.io/collector/component"
)

const (
	// DefaultPercentage is the share of the memory of the process that a budget has by
	// default. The rest is for the garbage that Go's collector has not yet collected, for
	// exporters' queues, and for other programs.
	DefaultPercentage = 25
	// unknownMemory is the assumed memory of the process if the operating system has no value.
	unknownMemory = 2 << 30
)

// Available returns the memory that the process may use, in bytes: the least of GOMEMLIMIT, the
// limit of its cgroup, and the memory of the machine.
func Available() int64 {
	available := int64(math.MaxInt64)
	for _, provider := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := provider(); err == nil && bytes > 0 && bytes < math.MaxInt64 {
			available = min(available, int64(bytes))
		}
	}
	if available == math.MaxInt64 {
		available = unknownMemory
	}
	return min(available, debug.SetMemoryLimit(-1))
}

// process returns the budget of a process without the extension memory_budget. Memory belongs to the process, so this is
// the only state that components share without configuration.
var process = sync.OnceValue(func() *Budget { return New(Available() / 100 * DefaultPercentage) })

// Provider is the extension memory_budget, as components see it.
type Provider interface {
	MemoryBudget() *Budget
}

// Of returns the budget that the components of a host share: that of the extension
// memory_budget, or one with the default limit if no such extension is configured.
func Of(host component.Host) *Budget {
	if host != nil {
		for _, extension := range host.GetExtensions() {
			if p, ok := extension.(Provider); ok {
				return p.MemoryBudget()
			}
		}
	}
	return process()
}
