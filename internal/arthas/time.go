// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"math"
	"time"
)

// Timestamp is a time of the server: since 4.0 a local time without its zone, before that an instant. The zero value is
// no time.
type Timestamp struct {
	// fields holds a local time as if it were in UTC, or an instant.
	fields  time.Time
	instant bool
}

// IsZero reports whether there is no time.
func (t Timestamp) IsZero() bool { return t.fields.IsZero() }

// In returns the instant. The zone is the server's, and not used for an instant.
func (t Timestamp) In(zone *time.Location) time.Time {
	if t.instant || t.IsZero() {
		return t.fields
	}
	f := t.fields
	return time.Date(f.Year(), f.Month(), f.Day(), f.Hour(), f.Minute(), f.Second(), f.Nanosecond(), zone)
}

// Offset returns the difference between local time and UTC of the server, by a time that the server wrote at about a
// known instant. Offsets are quarters of an hour. It is 0 for an instant.
func (t Timestamp) Offset(about time.Time) time.Duration {
	if t.instant || t.IsZero() {
		return 0
	}
	return t.fields.Sub(about).Round(15 * time.Minute)
}

// localLayout is the layout of a local time. Parsing accepts a fraction of a second too.
const localLayout = "2006-01-02 15:04:05"

// timestamp reads a time in either form.
func (r *reader) timestamp(expected string) Timestamp {
	switch r.value(expected) {
	case 0:
		return Timestamp{}
	case '"':
		begin := r.at
		text := r.bytes(expected)
		if r.err != nil {
			return Timestamp{}
		}
		fields, err := time.Parse(localLayout, string(text))
		if err != nil {
			r.fail(begin, expected, r.excerpt(begin))
		}
		return Timestamp{fields: fields}
	default:
		return Timestamp{fields: r.milliseconds(expected), instant: true}
	}
}

// milliseconds reads an instant in milliseconds since 1970, before the year 10000.
func (r *reader) milliseconds(expected string) time.Time {
	r.next()
	begin := r.at
	at := r.integer(expected)
	const most = 253402300800000
	if at <= 0 || at >= most {
		r.fail(begin, expected, r.excerpt(begin))
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}

// Cost is a duration that the server measured.
type Cost struct {
	time.Duration
	// Known is false if the server sent no duration, or one that is none: see [CostBound].
	Known bool
}

// CostBound has the known limits of the durations of calls. A call has no begin for the server if it began before its class
// was instrumented. Its duration is then the time since the host booted, and is no value.
type CostBound struct {
	// Elapsed is the time since the command was sent. The call began after that.
	Elapsed time.Duration
	// Uptime is the time since the JVM started, or 0 if it is not known. A host boots before its JVM starts, so a
	// duration without a begin is at least as long.
	Uptime time.Duration
}

// clockError is the part by which the clocks of client and server may differ.
const clockError = 1.0 / 1024

// Of returns the duration of one call. It is not known if the call took longer than the command exists.
func (b CostBound) Of(cost Cost) Cost { return b.Sum(cost, 1) }

// Sum returns the sum of the durations of a number of calls. It is not known if the calls together took longer than is
// possible, or as long as the JVM runs. The latter may be a true sum of very many concurrent calls, which looks the
// same.
func (b CostBound) Sum(cost Cost, calls int64) Cost {
	most := float64(b.Elapsed) * (1 + clockError) * float64(calls)
	if b.Uptime > 0 {
		most = min(most, float64(b.Uptime)*(1-clockError))
	}
	if !cost.Known || float64(cost.Duration) > most {
		return Cost{}
	}
	return cost
}

// costMillis reads a duration in milliseconds, with a fraction.
func (r *reader) costMillis(expected string) Cost {
	r.next()
	begin := r.at
	ms, is := r.decimal(expected)
	ns := math.Round(ms * float64(time.Millisecond))
	switch {
	case !is || ms < 0:
		return Cost{}
	case ns >= math.MaxInt64:
		r.fail(begin, expected, r.excerpt(begin))
		return Cost{}
	}
	return Cost{Duration: time.Duration(ns), Known: true}
}

// costNanos reads a duration in nanoseconds.
func (r *reader) costNanos(expected string) Cost {
	if r.next() == 'n' {
		r.skip()
		return Cost{}
	}
	ns := r.integer(expected)
	if ns < 0 || r.err != nil {
		return Cost{}
	}
	return Cost{Duration: time.Duration(ns), Known: true}
}
