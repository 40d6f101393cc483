// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package load generates the calls of a program that never was, as the program of
// package bytefrogagent: any number of threads walk up and down call trees, throw,
// catch and set markers, as fast as the HQ reads or at a rate. By the same seed it makes
// the same calls; only their times, and what an HQ suspends, differ.
//
// It can keep what it did and say which calls an HQ has to find in it: see Truth.
//
// Like a real agent it has several buffers open at once and writes a few events of one
// thread to one of them, so that numbers go back inside a connection, and names come
// after their first use and on other connections.
package load
