// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package lttng runs LTTng's own daemons for tests: a session daemon and a relay daemon with their own home, ports
// and processes, recording sessions, and traced programs.
//
// # Isolation
//
// All files of the daemons are in a directory named by LTTNG_HOME, which is removed after the test. If the test runs
// as root, daemons and programs run as the user nobody, because a session daemon of root would be the system's. Each
// daemon leads its own process group. The test ends it and all its children by its ID. A session daemon of the
// system, if there is one, is not isolated: LTTng offers it every program.
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
