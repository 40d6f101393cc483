// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Bounds of values.
const (
	// maxMillis is the last time that nanoseconds of 64 bits know, in the year 2262.
	maxMillis = math.MaxInt64 / int64(time.Millisecond)
	// maxCount is the last whole number below which numbers of JSON are exact everywhere.
	maxCount = 1<<53 - 1
	// maxGot is how much of what was wrong an error says.
	maxGot = 40
)

// wrong fails with a value that is JSON and not what has to be there.
func (s *scanner) wrong(at int, expected string, got []byte) {
	if s.err == nil {
		s.fail(at, expected, excerpt(got))
	}
}

// excerpt is the beginning of bytes.
func excerpt(of []byte) string {
	if len(of) > maxGot {
		return fmt.Sprintf("%q...", of[:maxGot])
	}
	return fmt.Sprintf("%q", of)
}

// integer reads a whole number within bounds: a number, or a text that is one.
func (s *scanner) integer(least, most int64) int64 {
	at := s.at
	text, _ := s.scalar()
	n, ok := parseInteger(text)
	if !ok || n < least || n > most {
		s.wrong(at, fmt.Sprintf("a whole number from %d to %d", least, most), text)
		return 0
	}
	return n
}

// parseInteger is strconv.ParseInt without a string for the usual ones. A number that begins
// with 0x is hexadecimal, as thread IDs are.
func parseInteger(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	if len(text) > 18 || !isDigit(text[0]) || len(text) > 1 && text[0] == '0' {
		return parseUnusualInteger(string(text))
	}
	for _, c := range text {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func parseUnusualInteger(text string) (int64, bool) {
	if len(text) > 2 && text[:2] == "0x" {
		n, err := strconv.ParseUint(text[2:], 16, 63)
		return int64(n), err == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// count reads how many there are.
func (s *scanner) count() int64 { return s.integer(0, maxCount) }

// millis reads a duration of milliseconds, of which there may be fractions, and whether one
// is said: null, the empty text and NaN say none.
func (s *scanner) millis() (d time.Duration, said bool) {
	at := s.at
	text, _ := s.scalar()
	if n, ok := parseInteger(text); ok && 0 <= n && n <= maxMillis {
		return time.Duration(n) * time.Millisecond, true
	}
	if len(text) == 0 || string(text) == "NaN" {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(f >= 0 && f < float64(maxMillis)) {
		s.wrong(at, "milliseconds", text)
		return 0, false
	}
	return time.Duration(math.Round(f * float64(time.Millisecond))), true
}

// epoch reads a time in milliseconds since 1970.
func (s *scanner) epoch() time.Time { return time.UnixMilli(s.integer(0, maxMillis)).UTC() }

// truth reads true or false, or a text or number that is one.
func (s *scanner) truth() bool {
	at := s.at
	text, _ := s.scalar()
	switch string(text) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	s.wrong(at, "true or false", text)
	return false
}

// localTimes reads times as a server in a place writes them.
type localTimes struct {
	place *time.Location
	// last is the text of the last one, and time what it means: most come in rows.
	last string
	time time.Time
}

const localLayout = "2006-01-02 15:04:05"

// next reads the next one.
func (l *localTimes) next(s *scanner) time.Time {
	at := s.at
	text, _ := s.scalar()
	if l.last != "" && string(text) == l.last {
		return l.time
	}
	t, err := time.ParseInLocation(localLayout, string(text), l.place)
	if err != nil || t.Year() < 1970 || t.UnixMilli() > maxMillis {
		s.wrong(at, "a time such as "+localLayout, text)
		return time.Time{}
	}
	l.last, l.time = string(text), t
	return t
}
