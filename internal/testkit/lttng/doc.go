// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttng runs LTTng's own daemons for tests: a session daemon and a relay daemon
// with a home, ports and processes of their own, sessions that are recorded through
// them, and programs that are traced.
//
// # Apart from others
//
// All that the daemons keep lies in a directory that goes with the test, named by
// LTTNG_HOME. Where the test runs as root, daemons and programs run as the user nobody:
// a session daemon of root's would be the system's. Each daemon leads a process group of
// its own, and is ended, with all that it has started, by its ID. What can't be kept
// apart is a session daemon of the system's, if there is one: LTTng offers it every
// program.
//
// A test needs only:
//
//	daemons := lttng.Start(t)
//	session := daemons.Create(t, lttng.Session{Name: "shop"})
//	program := daemons.StartC(t, daemons.BuildC(t, "testdata/lttng/calls.c"), "2", "10", "3", "0")
//	program.Step(t)
//	program.End(t)
//	session.Destroy(t)
package lttng
