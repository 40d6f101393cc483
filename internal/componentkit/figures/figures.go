// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package figures writes numbers so that a person can read them.
package figures

import (
	"fmt"
	"strconv"
)

// Count writes a number with a comma between thousands: 887,366.
func Count(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var grouped []byte
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			grouped = append(grouped, ',')
		}
		grouped = append(grouped, digits[i])
	}
	return string(grouped)
}

// Rate writes a number of events in a second in three digits or so: 1.27 M.
func Rate(perSecond float64) string {
	switch {
	case perSecond >= 1e6:
		return fmt.Sprintf("%.2f M", perSecond/1e6)
	case perSecond >= 1e4:
		return fmt.Sprintf("%.0f k", perSecond/1e3)
	default:
		return fmt.Sprintf("%.0f", perSecond)
	}
}

// Bytes writes a number of bytes in binary units: 13.8 MiB.
func Bytes(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < len("KMGTPE")-1 {
		value /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[prefix])
}
