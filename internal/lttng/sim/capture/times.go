// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pieces are the times of the relay daemon's pieces, in order of their offsets.
type pieces []piece

type piece struct {
	end int // offset of its end
	at  time.Duration
}

// The directions of a piece.
const (
	fromViewer = "c2s"
	fromRelay  = "s2c"
)

// endOfDirection replaces the length when a side has closed the connection.
const endOfDirection = "EOF"

// parseTimes reads the lines and returns those of the relay daemon.
func parseTimes(text []byte) (pieces, error) {
	var sent pieces
	var first int64
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[1] != fromViewer && fields[1] != fromRelay {
			return nil, fmt.Errorf("line %d: expected nanoseconds, %s or %s, offset, and length or %s, got %q", i+1, fromViewer, fromRelay, endOfDirection, line)
		}
		at, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: expected nanoseconds: %w", i+1, err)
		}
		if i == 0 {
			first = at
		}
		if fields[1] != fromRelay || fields[3] == endOfDirection {
			continue
		}
		offset, err := strconv.ParseUint(fields[2], 10, 40)
		if err != nil {
			return nil, fmt.Errorf("line %d: expected an offset: %w", i+1, err)
		}
		length, err := strconv.ParseUint(fields[3], 10, 40)
		if err != nil {
			return nil, fmt.Errorf("line %d: expected a length: %w", i+1, err)
		}
		if n := len(sent); n > 0 && (sent[n-1].end != int(offset) || sent[n-1].at > time.Duration(at-first)) || n == 0 && offset != 0 {
			return nil, fmt.Errorf("line %d: expected a piece after the previous one, at the same time or later, got %q", i+1, line)
		}
		sent = append(sent, piece{end: int(offset + length), at: time.Duration(at - first)})
	}
	return sent, nil
}

// at returns the time when all bytes before the offset had been sent.
func (p pieces) at(offset int) (time.Duration, error) {
	i, _ := slices.BinarySearchFunc(p, offset, func(p piece, offset int) int { return p.end - offset })
	if i == len(p) {
		return 0, fmt.Errorf("%s: expected a time for byte %d, got none", timesFile, offset-1)
	}
	return p[i].at, nil
}
