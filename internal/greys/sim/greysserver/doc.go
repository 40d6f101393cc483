// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package greysserver simulates a Greys server that is attached to a Java process, in both of its protocols and with
// faults. The simulated process does the same for the same seed. Tests compare every number that a client receives with
// the truth.
package greysserver
