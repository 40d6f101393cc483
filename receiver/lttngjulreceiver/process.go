// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

// process is what is known of the process that an agent is in. Empty: it isn't.
type process struct {
	// name is that of the executable file.
	name string
	// arguments are the command line, its name included, where it is wanted.
	arguments []string
	// started is when it was, in a unit of the system's own.
	started uint64
}
