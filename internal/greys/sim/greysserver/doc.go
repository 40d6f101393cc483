// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package greysserver plays a Greys server that is attached to a Java process, in both of its
// protocols, faults included. What the process does is made up, the same by the same seed,
// and every number that a client is told can be compared with what happened.
package greysserver
