// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"fmt"
	"slices"
)

// Names returns n different names of loggers that look like real ones.
func Names(n int) []string {
	packages := []string{"com.example.shop.order", "com.example.shop.stock", "com.example.db", "org.example.net.http"}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s.Part%05d", packages[i%len(packages)], i)
	}
	return names
}

// Attach adds loggers with the agent's handler to the program.
func (a *Agent) Attach(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggers = append(a.loggers, names...)
}

// Detach removes loggers.
func (a *Agent) Detach(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggers = slices.DeleteFunc(a.loggers, func(name string) bool { return slices.Contains(names, name) })
}

// Loggers returns the names of the program's loggers, in the order of the list. There are none before the program's
// first handler exists.
func (a *Agent) Loggers() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.loggers)
}
