// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture reads captures of Bytefrog agents: all bytes of one agent in one run, with the time of each piece. It
// is for tests and for programs that replay the agent.
//
// A capture is a zip file of one folder:
//
//	control.bin        the bytes of the agent's control connection
//	data-N.bin         the bytes of data connection N = 0, 1, …
//	configuration.ser  the configuration object as a JVM serialised it
//	index.json         rows of [seconds, file, what, offset, length] in order of time
//
// The package knows only these files, not the messages in them.
package capture
