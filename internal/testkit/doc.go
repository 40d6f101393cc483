// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package testkit has the common parts of the unit tests of several packages: free addresses, and waiting
// for a condition. Its packages below are test data in code: a slow and obvious pairing
// (reference), names of threads (lanenames), captures of LTTng (lttngdata), hostile requests (nested, handovers), and
// measurements (cputime, telemetrytest), and the rules of profiles (profiletest). No program imports them, except the
// readers of captures, which the simulators use.
package testkit
