// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package callsum sums the calls of one call stream while they are paired: by function, with
// a histogram of durations, and by call path. It counts every call, also those that no trace
// keeps.
//
// It knows functions, lanes and exceptions by the numbers that its stream uses for them. It
// knows no pdata, no spans, no goroutines and no clock. The owner of a stream makes one call
// at a time. What [Sums.Take] returns belongs to its caller, and can be read in another
// goroutine while the stream goes on.
//
// Each file uses only files below it:
//
//  1. sums.go has the interface, and the sums of functions.
//  2. paths.go has the call paths.
//  3. histogram.go counts durations.
//  4. increment.go has the result, and settings.go the bound that all streams share.
package callsum
