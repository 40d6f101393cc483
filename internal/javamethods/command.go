// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package javamethods

import "time"

// Command is a request to a server: one of the types of this file, or an [OwnCommand]. The types of this file cannot hold
// an expression, because a server would run it inside the program.
type Command interface{ command() }

// OwnCommand makes a type of another package a Command, if the type embeds it: a command of one tracer, with more
// options than the commands of this file.
type OwnCommand struct{}

func (OwnCommand) command() {}

// Target names methods of classes.
type Target struct {
	// Class matches qualified names of classes, such as "com.example.*". Method matches simple names of methods.
	Class, Method Pattern
	// Regexp makes both Java regular expressions, which match the whole name. Otherwise they are patterns with * and ?.
	Regexp bool
}

// Limit is the number of answers after which a command ends; 0 means never.
type Limit int32

type (
	// VersionCommand asks for the server's version. The answer is a [Version].
	VersionCommand struct{}

	// SessionsCommand asks for the sessions with the server and for its process. The answer is [Sessions].
	SessionsCommand struct{}

	// MonitorCommand counts calls of methods. The answers are an [Affected] and then one [Statistics] for each cycle,
	// without end. The console sends the first Statistics immediately; it has no methods.
	//
	// An [Affected] is usually the first answer of a command. Calls during the instrumentation can be reported before
	// it.
	MonitorCommand struct {
		Target
		// Cycle is the length of one count: whole seconds, at least 1 s.
		Cycle time.Duration
	}

	// TraceCommand traces calls. The answers are an [Affected] and one [Tree] for each call. GP has no such command.
	TraceCommand struct {
		Target
		Limit Limit
	}

	// StackCommand reports the callers of methods. The answers are an [Affected] and one [CallStack] for each call.
	StackCommand struct {
		Target
		Limit Limit
	}

	// RecordCommand records calls. The answers are an [Affected] and one [Record] for each call. GP has no such
	// command.
	RecordCommand struct {
		Target
		Limit Limit
	}

	// RecordsCommand asks for the recorded calls of all sessions: one [Record] for each.
	RecordsCommand struct{}

	// RecordDetailCommand asks for all details of one recorded call: a [RecordDetail].
	RecordDetailCommand struct {
		// Index is the index of the [Record].
		Index int64
	}

	// ClassesCommand asks for loaded classes: a [Class] for each.
	ClassesCommand struct {
		Class  Pattern
		Regexp bool
		// Fields asks for the fields of the classes too. The server then reads the values of static fields: it
		// initialises classes and calls toString on the values, inside the program. On Java 9 and newer it refuses this
		// for classes of Java itself.
		Fields bool
	}

	// MethodsCommand asks for methods of loaded classes: a [Method] for each.
	MethodsCommand struct{ Target }

	// ResetCommand removes instrumentation from classes. The answer is an [Affected], which the console does not send.
	// The console's reset has no pattern: it restores all classes, including those of running commands and of other
	// clients.
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
