// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas

import (
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// Command is a request to a server: one of the types of this file. No command changes the program, except that it
// instruments classes. No command writes to a file that the caller names.
type Command interface{ line() *line }

// CommandLine returns the text of a command. An error means that the command has a wrong or a missing field.
func CommandLine(c Command) (string, error) {
	l := c.line()
	return l.text.String(), l.err
}

// Target names methods of classes. A pattern of methods is <init> for constructors.
type Target struct {
	javamethods.Target
	// Exclude matches names of classes that Class should not match. It may be missing.
	Exclude javamethods.Pattern
	// MaxClasses is the maximum number of classes that the server instruments; 0 means the server's 50. If more match,
	// the server instruments none.
	MaxClasses int32
}

// Limit is the number of results after which a job ends; 0 means the server's [DefaultLimit].
type Limit int32

const (
	// DefaultLimit is the number of results after which the server ends a job that has no limit.
	DefaultLimit Limit = 100
	// MaxLimit is the largest limit: a job with it practically never ends by itself.
	MaxLimit Limit = 1<<31 - 1
)

func (l Limit) results() int64 {
	if l == 0 {
		l = DefaultLimit
	}
	return int64(l)
}

// limited is a command whose job ends after a number of results.
type limited interface{ limit() Limit }

type (
	// VersionCommand asks for the version of Arthas. The result is a [Version].
	VersionCommand struct{}

	// SessionCommand asks for the session and the process. The result is a [SessionState].
	SessionCommand struct{}

	// MonitorCommand counts calls of methods. The results are an [Enhanced] and one [Monitor] for each cycle. The server
	// sends no result before the first call.
	//
	// An [Enhanced] is usually the first result of commands that instrument classes. Results of calls can come before
	// it.
	MonitorCommand struct {
		Target
		// Cycle is the length of one count: whole seconds, at least 1 s.
		Cycle     time.Duration
		Limit     Limit
		Condition Expression
	}

	// TraceCommand traces calls. The results are an [Enhanced] and one [Trace] for each call.
	TraceCommand struct {
		Target
		Limit     Limit
		Condition Expression
		// JDKMethods includes calls of methods of Java itself.
		JDKMethods bool
	}

	// StackCommand reports the callers of methods. The results are an [Enhanced] and one [CallStack] for each call.
	StackCommand struct {
		Target
		Limit     Limit
		Condition Expression
	}

	// WatchCommand reports an expression at calls. The results are an [Enhanced] and one [Watch] for each point of each
	// call.
	WatchCommand struct {
		Target
		// Before, Success, Exception and Finish are the points of a call. Without any, the server has Finish.
		Before, Success, Exception, Finish bool
		// Value is what the server draws as a text; without it, the parameters, the object and the returned object.
		Value Expression
		// Depth is the depth to which the server draws objects; 0 means the server's 1.
		Depth int32
		Limit Limit
		// Condition needs a Value.
		Condition Expression
		// TraceID and SpanID are the IDs of the trace and the span of the call, as texts. Either may be missing.
		// [Watch.Identified] returns them. They need a Value, and SpanID needs a TraceID.
		TraceID, SpanID Expression
	}

	// RecordCommand records calls, with their objects, in the memory of the traced program. The results are an
	// [Enhanced] and one [Records] for each call.
	RecordCommand struct {
		Target
		Limit     Limit
		Condition Expression
	}

	// RecordsCommand asks for all recorded calls, those of other clients too. The result is one [Records].
	RecordsCommand struct{}

	// RecordDetailCommand asks for one recorded call. The result is a [Records].
	RecordDetailCommand struct{ Index int32 }

	// ForgetRecordCommand removes one recorded call from the memory of the traced program.
	ForgetRecordCommand struct{ Index int32 }

	// ClassesCommand asks for loaded classes. The results are [Classes], which the server sends in parts.
	ClassesCommand struct {
		Class  javamethods.Pattern
		Regexp bool
		// Details asks for all of each class; without it, only for names.
		Details bool
		// Max is the maximum number of classes with details; 0 means the server's 100. If more match, the server sends
		// none.
		Max int32
	}

	// MethodsCommand asks for methods of loaded classes: a [Method] for each.
	MethodsCommand struct {
		Class, Method javamethods.Pattern
		Regexp        bool
		Details       bool
		// Max is the maximum number of classes; 0 means the server's 100. If more match, the server sends none.
		Max int32
	}

	// ResetCommand removes instrumentation from the matching classes, also if others instrumented them. The result is a
	// [Reset]. Classes of a running job stay instrumented, and no later reset restores them.
	ResetCommand struct {
		Class  javamethods.Pattern
		Regexp bool
	}

	// ResetAllCommand is a [ResetCommand] of all classes.
	ResetAllCommand struct{}

	// ThreadsCommand asks for threads, the busiest first. The result is [Threads].
	ThreadsCommand struct {
		// Busiest is the number of threads, with their stacks; 0 means all threads without their stacks.
		Busiest int32
		// Sample is the time over which the server measures their CPU, in whole milliseconds; 0 means the server's
		// 200 ms.
		Sample time.Duration
	}

	// MemoryCommand asks for the memory of the program. The result is [Memory].
	MemoryCommand struct{}

	// DashboardCommand asks for threads, memory and garbage collections. The results are one [Dashboard] in each
	// interval. The first has no CPU of threads.
	DashboardCommand struct {
		// Interval is in whole milliseconds, at least 1 ms; 0 means the server's 5 s.
		Interval time.Duration
		// Limit has no default: 0 means that the job does not end.
		Limit Limit
	}

	// JVMCommand asks for properties of the JVM. The result is a [JVM].
	JVMCommand struct{}

	// StartProfilerCommand starts the profiler, without the samples of an earlier start. The result is a [Profiler]. The
	// command fails if the profiler runs.
	StartProfilerCommand struct {
		Event ProfilerEvent
		// Interval is the time between samples, for ProfileCPU and ProfileWall; 0 means the profiler's.
		Interval time.Duration
		// Timeout is the time after which the profiler stops by itself: whole seconds, at least 1 s.
		Timeout time.Duration
	}

	// ProfilerStatusCommand asks for the state of the profiler. The result is a [Profiler].
	ProfilerStatusCommand struct{}

	// StopProfilerCommand stops the profiler, and asks for the stacks since its start as text. The result is a [Profiler].
	// The server's own command stop would write them to a file on the program's machine. If the profiler does not run,
	// the server sends the stacks of the last start.
	StopProfilerCommand struct {
		// MaxText is the maximum length of the stacks in bytes. The client drops those beyond it, and counts their bytes.
		MaxText int64
	}

	// ProfilerEvent is what the profiler samples.
	ProfilerEvent string
)

// The events of the profiler.
const (
	ProfileCPU   ProfilerEvent = "cpu"
	ProfileWall  ProfilerEvent = "wall"
	ProfileAlloc ProfilerEvent = "alloc"
	ProfileLock  ProfilerEvent = "lock"
)

// target writes the arguments of a command on methods. Every argument except the last may be missing: an expression is
// then not written.
func (l *line) target(t Target, expressions ...Expression) *line {
	if t.Class == (javamethods.Pattern{}) || t.Method == (javamethods.Pattern{}) {
		return l.fail(errors.New("the command has no pattern of classes or none of methods"))
	}
	l.flag("-E", t.Regexp).number("-m", int64(t.MaxClasses)).pattern("--exclude-class-pattern", t.Exclude)
	l.word("--").argument(t.Class.String()).argument(t.Method.String())
	for _, expression := range expressions {
		if expression != (Expression{}) {
			l.argument(expression.text)
		}
	}
	return l
}

func (VersionCommand) line() *line { return newLine("version") }

func (SessionCommand) line() *line { return newLine("session") }

func (c MonitorCommand) line() *line {
	l := newLine("monitor")
	if c.Cycle < time.Second || c.Cycle%time.Second != 0 {
		return l.fail(fmt.Errorf("cycle is %v: expected whole seconds, at least 1s", c.Cycle))
	}
	return l.number("-c", int64(c.Cycle/time.Second)).number("-n", int64(c.Limit)).target(c.Target, c.Condition)
}

func (c TraceCommand) line() *line {
	l := newLine("trace").number("-n", int64(c.Limit))
	if c.JDKMethods {
		l.word("--skipJDKMethod").word("false")
	}
	return l.target(c.Target, c.Condition)
}

func (c StackCommand) line() *line {
	return newLine("stack").number("-n", int64(c.Limit)).target(c.Target, c.Condition)
}

func (c WatchCommand) line() *line {
	l := newLine("watch")
	if c.Value == (Expression{}) && c.Condition != (Expression{}) {
		return l.fail(errors.New("the command has a condition and no value: the server would read the condition as the value"))
	}
	if c.Value == (Expression{}) && c.TraceID != (Expression{}) || c.TraceID == (Expression{}) && c.SpanID != (Expression{}) {
		return l.fail(errors.New("the command has an ID and no value, or an ID of a span and none of a trace"))
	}
	value, depth, err := c.identified()
	if err != nil {
		return l.fail(err)
	}
	l.flag("-b", c.Before).flag("-s", c.Success).flag("-e", c.Exception).flag("-f", c.Finish)
	return l.number("-x", int64(depth)).number("-n", int64(c.Limit)).target(c.Target, value, c.Condition)
}

func (c RecordCommand) line() *line {
	return newLine("tt").word("-t").number("-n", int64(c.Limit)).target(c.Target, c.Condition)
}

func (RecordsCommand) line() *line { return newLine("tt").word("-l") }

func (c RecordDetailCommand) line() *line {
	return newLine("tt").number("-i", int64(c.Index)).needs(c.Index > 0, "index of a record")
}

func (c ForgetRecordCommand) line() *line {
	return newLine("tt").word("-d").number("-i", int64(c.Index)).needs(c.Index > 0, "index of a record")
}

func (c ClassesCommand) line() *line {
	l := newLine("sc").flag("-d", c.Details).flag("-E", c.Regexp).number("-n", int64(c.Max))
	return l.word("--").argument(c.Class.String()).needs(c.Class != javamethods.Pattern{}, "pattern of classes")
}

func (c MethodsCommand) line() *line {
	l := newLine("sm").flag("-d", c.Details).flag("-E", c.Regexp).number("-n", int64(c.Max))
	l.word("--").argument(c.Class.String()).needs(c.Class != javamethods.Pattern{}, "pattern of classes")
	if c.Method != (javamethods.Pattern{}) {
		l.argument(c.Method.String())
	}
	return l
}

func (c ResetCommand) line() *line {
	l := newLine("reset").flag("-E", c.Regexp)
	return l.word("--").argument(c.Class.String()).needs(c.Class != javamethods.Pattern{}, "pattern of classes")
}

func (ResetAllCommand) line() *line { return newLine("reset") }

func (c ThreadsCommand) line() *line {
	l := newLine("thread").milliseconds("-i", c.Sample)
	if c.Busiest == 0 {
		return l.word("--all")
	}
	return l.number("-n", int64(c.Busiest))
}

func (MemoryCommand) line() *line { return newLine("memory") }

func (c DashboardCommand) line() *line {
	return newLine("dashboard").milliseconds("-i", c.Interval).number("-n", int64(c.Limit))
}

func (JVMCommand) line() *line { return newLine("jvm") }

func (c StartProfilerCommand) line() *line {
	l := newLine("profiler").word("execute")
	arguments := "start,event=" + string(c.Event)
	switch c.Event {
	case ProfileCPU, ProfileWall:
		if c.Interval < 0 {
			return l.fail(fmt.Errorf("interval is %v: expected at least 0", c.Interval))
		}
		if c.Interval > 0 {
			arguments += fmt.Sprintf(",interval=%d", c.Interval.Nanoseconds())
		}
	case ProfileAlloc, ProfileLock:
		if c.Interval != 0 {
			return l.fail(fmt.Errorf("the profiler's event %q has no interval of time", c.Event))
		}
	default:
		return l.fail(fmt.Errorf("the profiler's event is %q: expected one of the constants", c.Event))
	}
	if c.Timeout < time.Second || c.Timeout%time.Second != 0 {
		return l.fail(fmt.Errorf("timeout is %v: expected whole seconds, at least 1s", c.Timeout))
	}
	return l.argument(fmt.Sprintf("%s,timeout=%d", arguments, c.Timeout/time.Second))
}

func (ProfilerStatusCommand) line() *line { return newLine("profiler").word("status") }

func (c StopProfilerCommand) line() *line {
	// total: the values are nanoseconds or bytes. ann: names of Java's frames have a suffix. norm: names of lambdas have no
	// numbers.
	l := newLine("profiler").word("execute").argument("stop,collapsed,total,ann,norm")
	return l.needs(c.MaxText > 0, "maximum length of the stacks")
}

func (c MonitorCommand) limit() Limit { return c.Limit }
func (c TraceCommand) limit() Limit   { return c.Limit }
func (c StackCommand) limit() Limit   { return c.Limit }
func (c WatchCommand) limit() Limit   { return c.Limit }
func (c RecordCommand) limit() Limit  { return c.Limit }
