// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

// process describes the process of an agent. Empty: it wasn't found.
type process struct {
	// name is that of the executable file.
	name string
	// arguments are the command line, its name included, where it is wanted.
	arguments []string
	// started is when it was, in a unit of the system's own.
	started uint64
}
