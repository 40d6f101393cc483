// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

// fewer returns a third of a number with -short, for the race detector.
func fewer(short bool, n int) int {
	if short {
		return n / 3
	}
	return n
}
