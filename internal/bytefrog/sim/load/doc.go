// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package load generates calls as the program of package bytefrogagent: any number of threads walk up and down call
// trees, throw, catch and set markers, at the HQ's speed or at a rate. The same seed makes the same calls; only their
// times and suspended parts differ.
//
// It can record its calls and return the calls that an HQ has to find: see Truth.
//
// Like a real agent it has several open buffers and writes a few events of one thread to one of them. So sequence
// numbers decrease inside a connection, and names arrive after their first use and on other connections.
package load
