// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strconv"
	"strings"
)

// lastOldVersion is the last released version of the gem, of January 2015. On a current Ruby some
// of its commands end the program.
var lastOldVersion = []int{0, 1, 10}

// isOld reports whether a version is at most lastOldVersion. The released gem sends no version. A
// version without numbers counts as new.
func isOld(version string) bool {
	if version == "" {
		return true
	}
	var numbers []int
	for _, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		numbers = append(numbers, n)
	}
	return slices.Compare(numbers, lastOldVersion) <= 0
}
