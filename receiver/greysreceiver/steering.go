// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// starts returns the commands with which operators start tasks.
func starts() []server.Start {
	calls := func(kind task.Kind, summary string, limit agentcontrol.Parameter) server.Start {
		return server.Start{
			Kind: kind, Summary: summary, Parameters: append(task.TargetParameters(), limit),
			Task: func(arguments agentcontrol.Arguments) (*task.Task, error) {
				of := task.CallsOf(arguments)
				return of.Task("arguments", kind)
			},
		}
	}
	return []server.Start{
		{
			Kind: task.Monitor, Summary: "Count the calls of methods, until the task or the collector ends.", Parameters: append(task.TargetParameters(), task.CycleParameter),
			Task: func(arguments agentcontrol.Arguments) (*task.Task, error) {
				of := task.MonitorOf(arguments)
				return of.Task("arguments")
			},
		},
		calls(task.Trace, "Report calls of methods with the calls inside them. GP has no such command.", task.LimitParameter),
		calls(task.Stack, "Report the callers of methods.", task.LimitParameter),
		calls(task.Records, "Record calls, with parameters and results in the program's memory. By GP: report calls that any client has recorded, unless an earlier list had them.", task.RecordsParameter),
	}
}

// reset is the command that restores classes.
var reset = server.Reset{
	Summary: "Restore classes: remove the code of all commands of all clients. The receiver ends its commands for it, and sends them again.",
	Parameters: []agentcontrol.Parameter{
		task.ClassesParameter("Names of classes by GP; default: all. A console restores all classes."),
		task.RegexpParameter("It is one of Java's regular expressions."),
	},
	Classes: task.ClassesOf,
}
