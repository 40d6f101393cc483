// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"strings"
)

// count is how much there was of something.
type count struct {
	name string
	n    int64
}

type counts []count

// sum is all of them together.
func (c counts) sum() (n int64) {
	for _, of := range c {
		n += of.n
	}
	return n
}

// of is the count of that name.
func (c counts) of(name string) (n int64) {
	for _, of := range c {
		if of.name == name {
			n += of.n
		}
	}
	return n
}

// String names those that are not 0.
func (c counts) String() string {
	var parts []string
	for _, of := range c {
		if of.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.n, of.name))
		}
	}
	return strings.Join(parts, ", ")
}

// balance is what became of something that was sent.
type balance struct {
	what            string
	sent, delivered int64
	// lost is the exact number of events that are counted as lost.
	lost counts
	// atMost is what can be lost beyond that, each for a reason that bounds it.
	atMost counts
	// more is how much more can be delivered than was counted as sent.
	more int64
}

// missing returns the number of events that were neither delivered nor counted.
func (b balance) missing() int64 { return b.sent - b.delivered - b.lost.sum() }

// unexplained is what of that has no reason: less than 0, what came and nobody sent.
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
