// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Limits of values.
const (
	// maxMillis is the last time that fits in 64 bits as nanoseconds, in the year 2262.
	maxMillis = math.MaxInt64 / int64(time.Millisecond)
	// maxCount is the largest whole number below which all JSON numbers are exact.
	maxCount = 1<<53 - 1
	// maxGot is the maximum number of received bytes in an error.
	maxGot = 40
)

// unexpectedValue fails with a value that is valid JSON but not allowed.
func (s *scanner) unexpectedValue(at int, expected string, got []byte) {
	if s.err == nil {
		s.fail(at, expected, excerpt(got))
	}
}

// excerpt quotes the beginning of bytes.
func excerpt(of []byte) string {
	if len(of) > maxGot {
		return fmt.Sprintf("%q...", of[:maxGot])
	}
	return fmt.Sprintf("%q", of)
}

// integer reads a whole number within limits: a number, or a string that contains one.
func (s *scanner) integer(least, most int64) int64 {
	at := s.at
	text, _ := s.scalar()
	n, ok := parseInteger(text)
	if !ok || n < least || n > most {
		s.unexpectedValue(at, fmt.Sprintf("a whole number from %d to %d", least, most), text)
		return 0
	}
	return n
}

// parseInteger is strconv.ParseInt without an allocation for usual numbers. A number that begins with 0x is
// hexadecimal, like thread IDs.
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

// count reads a number of things.
func (s *scanner) count() int64 { return s.integer(0, maxCount) }

// millis reads a duration in milliseconds, possibly with a fraction, and reports whether there is one. null, the empty
// string and NaN mean none.
func (s *scanner) millis() (d time.Duration, present bool) {
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
		s.unexpectedValue(at, "milliseconds", text)
		return 0, false
	}
	return time.Duration(math.Round(f * float64(time.Millisecond))), true
}

// epoch reads a time in milliseconds since 1970.
func (s *scanner) epoch() time.Time { return time.UnixMilli(s.integer(0, maxMillis)).UTC() }

// boolean reads true or false, also as a string or number.
func (s *scanner) boolean() bool {
	at := s.at
	text, _ := s.scalar()
	switch string(text) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	s.unexpectedValue(at, "true or false", text)
	return false
}

// localTimes reads times in the server's time zone.
type localTimes struct {
	place *time.Location
	// last is the text of the last time, and time its value: many consecutive times are equal.
	last string
	time time.Time
}

const localLayout = "2006-01-02 15:04:05"

// next reads a time.
func (l *localTimes) next(s *scanner) time.Time {
	at := s.at
	text, _ := s.scalar()
	if l.last != "" && string(text) == l.last {
		return l.time
	}
	t, err := time.ParseInLocation(localLayout, string(text), l.place)
	if err != nil || t.Year() < 1970 || t.UnixMilli() > maxMillis {
		s.unexpectedValue(at, "a time such as "+localLayout, text)
		return time.Time{}
	}
	l.last, l.time = string(text), t
	return t
}
