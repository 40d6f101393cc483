// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture reads captures of Bytefrog agents: everything one agent sent in
// one run, byte for byte, with the time of each piece. It is for tests and for
// programs that play the agent again.
//
// A capture is a zip file of one folder:
//
//	control.bin        what the agent sent on its control connection
//	data-N.bin         what it sent on data connection N = 0, 1, …
//	configuration.ser  the configuration object as a JVM serialised it
//	index.json         rows of [seconds, file, what, offset, length] in order of time
//
// The package knows these files and no message in them.
package capture
