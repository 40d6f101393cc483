// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol

import "go.opentelemetry.io/collector/component"

// Directory is the extension, as a receiver sees it.
type Directory interface {
	// Register shows an agent until end is called, which may be more than once.
	Register(agent Agent) (end func())
}

// Directories are all that are configured.
type Directories []Directory

// Of returns the directories of a host. Without any, registering does nothing.
func Of(host component.Host) (all Directories) {
	for _, extension := range host.GetExtensions() {
		if d, ok := extension.(Directory); ok {
			all = append(all, d)
		}
	}
	return all
}

// Register shows an agent in all directories until end is called.
func (all Directories) Register(agent Agent) (end func()) {
	switch len(all) {
	case 0:
		return func() {}
	case 1:
		return all[0].Register(agent)
	}
	ends := make([]func(), len(all))
	for i, d := range all {
		ends[i] = d.Register(agent)
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
