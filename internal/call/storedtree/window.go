// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package storedtree

import (
	"fmt"
	"time"
)

// Window is the time of a tree.
type Window struct {
	Length Length
	// Start is its begin in UTC, in Unix seconds. It is 0 for [Live].
	Start int64
}

// Length is the length of a window.
type Length uint8

// The lengths of windows. A live tree has everything since the start or the last reset.
const (
	Live Length = iota
	Hour
	Day
	lengths
)

// The texts of windows in addresses. Z is UTC.
const (
	hourLayout = "2006-01-02T15Z"
	dayLayout  = "2006-01-02Z"
)

// HourOf returns the hour of a time.
func HourOf(t time.Time) Window { return Window{Hour, t.UTC().Truncate(time.Hour).Unix()} }

// DayOf returns the day of a time.
func DayOf(t time.Time) Window {
	year, month, day := t.UTC().Date()
	return Window{Day, time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()}
}

// From returns the begin of the window, in UTC.
func (w Window) From() time.Time { return time.Unix(w.Start, 0).UTC() }

// To returns the end of the window, in UTC.
func (w Window) To() time.Time {
	switch w.Length {
	case Hour:
		return w.From().Add(time.Hour)
	case Day:
		return w.From().AddDate(0, 0, 1)
	}
	return w.From()
}

// String returns the text of the window in addresses: 2026-11-27T10Z for an hour, 2026-11-27Z for a day.
func (w Window) String() string {
	switch w.Length {
	case Hour:
		return w.From().Format(hourLayout)
	case Day:
		return w.From().Format(dayLayout)
	}
	return "live"
}

// ParseWindow returns the window of a text.
func ParseWindow(text string) (Window, error) {
	if t, err := time.Parse(hourLayout, text); err == nil {
		return HourOf(t), nil
	}
	if t, err := time.Parse(dayLayout, text); err == nil {
		return DayOf(t), nil
	}
	return Window{}, fmt.Errorf("expected an hour in UTC such as 2026-11-27T10Z, or a day such as 2026-11-27Z, got %.40q", text)
}
