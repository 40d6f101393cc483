// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package pathprofiles makes profiles of call paths from the sums of call streams. A [Growth]
// collects the sums of one interval, and has three profiles for each resource and scope: calls,
// errors, and the time of each path without its callees.
//
// A profile names whole stacks, so its size is in proportion to the number of paths and to their
// depth. Growth itself has one node for each path. It makes the stacks of one message at a time, and
// divides them among messages of a bounded size, each with a dictionary of its own.
//
// It knows no pipelines, and has neither goroutines nor a clock. One goroutine at a time uses a
// Growth. Texts of increments are valid UTF-8, because batches of call events are.
package pathprofiles
