// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package logagent

import (
	"fmt"
	"slices"
)

// Names makes n names of loggers as programs have them, all different.
func Names(n int) []string {
	packages := []string{"com.example.shop.order", "com.example.shop.stock", "com.example.db", "org.example.net.http"}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s.Part%05d", packages[i%len(packages)], i)
	}
	return names
}

// Attach has the program make loggers, or give them the agent's handler.
func (a *Agent) Attach(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggers = append(a.loggers, names...)
}

// Detach takes loggers away.
func (a *Agent) Detach(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loggers = slices.DeleteFunc(a.loggers, func(name string) bool { return slices.Contains(names, name) })
}

// Loggers are the names of the loggers that the program has now, in the order of the
// list: none before its first handler is made.
func (a *Agent) Loggers() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.loggers)
}
