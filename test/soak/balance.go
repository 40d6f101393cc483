// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"strings"
)

// count is a number with a name.
type count struct {
	name string
	n    int64
}

type counts []count

// sum returns the sum of all numbers.
func (c counts) sum() (n int64) {
	for _, of := range c {
		n += of.n
	}
	return n
}

// of returns the sum of the numbers with a name.
func (c counts) of(name string) (n int64) {
	for _, of := range c {
		if of.name == name {
			n += of.n
		}
	}
	return n
}

// String lists the numbers that are not 0.
func (c counts) String() string {
	var parts []string
	for _, of := range c {
		if of.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.n, of.name))
		}
	}
	return strings.Join(parts, ", ")
}

// balance compares the sent and the delivered amount of one kind of data.
type balance struct {
	what            string
	sent, delivered int64
	// lost is the exact number of events that are counted as lost.
	lost counts
	// atMost is the largest further loss, by its reasons.
	atMost counts
	// more is the largest amount that can be delivered although it was not counted as sent.
	more int64
}

// missing returns the number of events that were neither delivered nor counted.
func (b balance) missing() int64 { return b.sent - b.delivered - b.lost.sum() }

// unexplained returns the missing amount that no reason explains. A negative value is an amount
// that was delivered and never sent.
func (b balance) unexplained() int64 {
	switch missing := b.missing(); {
	case missing > b.atMost.sum():
		return missing - b.atMost.sum()
	case missing < -b.more:
		return missing + b.more
	default:
		return 0
	}
}

// row is a line of the report's table.
func (b balance) row() string {
	bounded := ""
	if b.atMost.sum() > 0 {
		bounded = fmt.Sprintf("%d of %s", max(0, b.missing()), b.atMost)
	}
	return fmt.Sprintf("| %s | %d | %d | %s | %s | **%d** |\n", b.what, b.sent, b.delivered, b.lost, bounded, b.unexplained())
}
