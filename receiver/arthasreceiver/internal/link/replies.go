// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
)

// replies returns a result as replies. received is the time of its receipt.
func (j *job) replies(result arthas.Result, received time.Time) []javamethods.Reply {
	switch r := result.(type) {
	case *arthas.Enhanced:
		return j.enhanced(r)
	case *arthas.Monitor:
		return []javamethods.Reply{&javamethods.Statistics{Methods: rows(r, received)}}
	case *arthas.Trace:
		tree, ok := newTree(r, j.at(r.Time, received))
		if !ok {
			j.Count(CountTreesLeftOut, 1)
			return nil
		}
		return []javamethods.Reply{tree}
	case *arthas.CallStack:
		stack := &javamethods.CallStack{Time: j.at(r.Time, received), Thread: r.Thread, Frames: r.Frames}
		stack.TraceID, stack.ForeignTrace = traceID(r.TraceID)
		return []javamethods.Reply{stack}
	case *arthas.Watch:
		return []javamethods.Reply{j.watch(r, received)}
	case *arthas.Records:
		replies := make([]javamethods.Reply, 0, len(r.Calls))
		for i := range r.Calls {
			replies = append(replies, j.record(&r.Calls[i], received))
		}
		return replies
	default:
		return nil
	}
}

// watch returns a watched value. IDs that are none of W3C are foreign ones.
func (j *job) watch(r *arthas.Watch, received time.Time) *javamethods.Watch {
	w := &javamethods.Watch{
		Time: j.at(r.Time, received), Class: r.Class, Method: r.Method, Point: r.Point, Value: r.Value, Cost: r.Cost.Duration, HasCost: r.Cost.Known,
	}
	if !j.command.Identified {
		return w
	}
	trace, span, value, ok := r.Identified()
	if !ok {
		return w
	}
	w.Value = value
	if w.TraceID, w.ForeignTrace = traceID(trace); w.TraceID != [16]byte{} {
		w.SpanID = spanID(span)
	}
	return w
}

// enhanced returns what the server instrumented. If it instrumented nothing although classes match, that is the reason
// for which the command fails.
func (j *job) enhanced(r *arthas.Enhanced) []javamethods.Reply {
	switch {
	case r.OverLimit != "":
		j.refusal = fmt.Errorf("%w: %s", javamethods.ErrRefused, r.OverLimit)
		return nil
	case !r.Success && r.Classes > 0:
		j.refusal = fmt.Errorf("%w: %s", javamethods.ErrUnmatched, r.Message)
		return nil
	case !r.Success && r.Message == "":
		j.refusal = fmt.Errorf("%w: %w", javamethods.ErrRefused, errNotInstrumented)
		return nil
	default:
		return []javamethods.Reply{&javamethods.Affected{Classes: r.Classes, Methods: r.Methods}}
	}
}

var errNotInstrumented = errors.New("the server instrumented no class, and gave no reason")

// rows returns the rows of a cycle. The server's time is that of the last call, so the time of receipt is the end of the
// cycle. A cycle with an unknown duration adds its calls and no time, and has no mean.
func rows(m *arthas.Monitor, at time.Time) []javamethods.MethodStatistics {
	all := make([]javamethods.MethodStatistics, 0, len(m.Methods))
	for i := range m.Methods {
		of := &m.Methods[i]
		if of.Calls <= 0 {
			continue
		}
		row := javamethods.MethodStatistics{
			Time: at, Class: of.Class, Method: of.Method, Calls: of.Calls, Succeeded: of.Succeeded, Failed: of.Failed, HasMean: of.Sum.Known, HasSum: true,
		}
		if of.Sum.Known {
			row.Sum, row.Mean = of.Sum.Duration, of.Sum.Duration/time.Duration(of.Calls)
		}
		all = append(all, row)
	}
	return all
}

// record returns a recorded call. Its time is the end of the call.
func (j *job) record(r *arthas.Record, received time.Time) *javamethods.RecordDetail {
	return &javamethods.RecordDetail{
		Record: javamethods.Record{
			Index: int64(r.Index), Time: j.at(r.Time, received), Cost: r.Cost.Duration, Untimed: !r.Cost.Known, Returned: r.Returned, Threw: r.Threw,
			Object: r.Object, Class: r.Class, Method: r.Method,
		},
		Parameters: r.Parameters, Return: r.Return, Exception: r.Exception,
	}
}

// at returns the instant of a server's time, or zero if it is not known. A time that is far from the receipt shows a
// wrong clock or zone.
func (j *job) at(of arthas.Timestamp, received time.Time) time.Time {
	const far, unusual = 24 * time.Hour, 20 * time.Minute
	if of.IsZero() || j.zone == nil {
		return time.Time{}
	}
	t := of.In(j.zone)
	if received.Sub(t).Abs() > unusual && j.askZoneAgain(received) {
		t = of.In(j.zone)
	}
	if received.Sub(t).Abs() > far {
		return time.Time{}
	}
	return t
}

// readZone notes the zone of a session that was just opened.
func (j *job) readZone(of arthas.Server) {
	j.zoneAsked = j.Now()
	if of.HasOffset {
		j.zone = time.FixedZone("", int(of.Offset/time.Second))
	}
}

// askZoneAgain requests the zone with another session, unless it was requested shortly before. A command can run for months,
// and the server's difference to UTC changes with daylight saving time.
func (j *job) askZoneAgain(now time.Time) bool {
	const shortly = 10 * time.Minute
	if now.Sub(j.zoneAsked) < shortly {
		return false
	}
	j.zoneAsked = now
	s, err := j.client.Open(j.pulling)
	if err != nil {
		return false
	}
	j.readZone(s.Server())
	s.Forget()
	_ = s.Close(j.ctx) // a session without a job expires
	return true
}
