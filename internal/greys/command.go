// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greys

import "time"

// Command is what a server is asked for: one of the types of this file. None of them can
// hold an expression, which a server would run inside the program.
type Command interface{ command() }

// Target names methods of classes.
type Target struct {
	// Class and Method match names: Class the qualified ones of classes, "com.example.*",
	// Method the simple ones of methods.
	Class, Method Pattern
	// Regexp says that both are Java's regular expressions, which match the whole name, and
	// not patterns with * and ?.
	Regexp bool
}

// Limit bounds how many answers a command gives before it ends by itself; 0: it doesn't.
type Limit int32

type (
	// VersionCommand asks for the server's version, a [Version].
	VersionCommand struct{}

	// SessionsCommand asks for the sessions with the server and its process: [Sessions].
	SessionsCommand struct{}

	// MonitorCommand has calls of methods counted: an [Affected], and a [Statistics] for
	// each cycle, without end. The console's first one comes at once, of no methods.
	//
	// Where a command gives an [Affected] beside others, it is the first answer as a rule, but
	// calls that happen meanwhile can be told before.
	MonitorCommand struct {
		Target
		// Cycle is how long is counted: whole seconds, 1 s at least.
		Cycle time.Duration
	}

	// TraceCommand has calls traced: an [Affected], and a [Tree] for each. GP has none.
	TraceCommand struct {
		Target
		Limit Limit
	}

	// StackCommand has the callers of methods said: an [Affected], and a [CallStack] for
	// each call.
	StackCommand struct {
		Target
		Limit Limit
	}

	// RecordCommand has calls recorded: an [Affected], and a [Record] for each. GP has none.
	RecordCommand struct {
		Target
		Limit Limit
	}

	// RecordsCommand asks for what is recorded, by whomever: a [Record] for each.
	RecordsCommand struct{}

	// RecordDetailCommand asks for all that is known of one recorded call: a [RecordDetail].
	RecordDetailCommand struct {
		// Index is the [Record]'s.
		Index int64
	}

	// ClassesCommand asks for loaded classes: a [Class] for each.
	ClassesCommand struct {
		Class  Pattern
		Regexp bool
		// Fields asks for their fields too. The server reads the values of static ones then,
		// which initialises classes and runs toString of what is in them, in the program; and
		// on Java 9 and newer it can't for classes of Java itself, and refuses.
		Fields bool
	}

	// MethodsCommand asks for methods of loaded classes: a [Method] for each.
	MethodsCommand struct{ Target }

	// ResetCommand takes out of classes what commands put into them: an [Affected], where the
	// server says it, which consoles don't. A console has no patterns for it: everything is
	// taken out of all classes, what running commands, of anybody, have there included.
	ResetCommand struct {
		Class  Pattern
		Regexp bool
	}
)

func (VersionCommand) command()      {}
func (SessionsCommand) command()     {}
func (MonitorCommand) command()      {}
func (TraceCommand) command()        {}
func (StackCommand) command()        {}
func (RecordCommand) command()       {}
func (RecordsCommand) command()      {}
func (RecordDetailCommand) command() {}
func (ClassesCommand) command()      {}
func (MethodsCommand) command()      {}
func (ResetCommand) command()        {}
