// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package testkit has common parts of the unit tests of several packages: free addresses, and waiting for a condition.
// The packages below it are a slow and simple pairing (reference), hostile requests (nested, handovers), and
// measurements (cputime, telemetrytest). No program imports them, except the readers of captures, which the simulators
// use.
package testkit
