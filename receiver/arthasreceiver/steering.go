// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/server"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// starts returns the commands with which operators start tasks. None has an expression, so a watch reports what the server
// reports by default.
func starts() []server.Start {
	calls := func(kind task.Kind, summary string, limit agentcontrol.Parameter, newTask func(*CallsConfig) (*task.Task, error)) server.Start {
		return server.Start{
			Kind: kind, Summary: summary, Parameters: append(task.TargetParameters(), limit),
			Task: func(arguments agentcontrol.Arguments) (*task.Task, error) {
				of := task.CallsOf(arguments)
				return newTask(&CallsConfig{TargetConfig: TargetConfig{TargetConfig: of.TargetConfig}, Limit: of.Limit})
			},
		}
	}
	const field = "arguments"
	records := task.LimitParameter
	records.Summary, records.Least, records.Most = "The number of calls after which it ends; default 100.", 1, maxRecords
	return []server.Start{
		{
			Kind: task.Monitor, Summary: "Count the calls of methods, until the task or the collector ends.", Parameters: append(task.TargetParameters(), task.CycleParameter),
			Task: func(arguments agentcontrol.Arguments) (*task.Task, error) {
				of := task.MonitorOf(arguments)
				monitor := MonitorConfig{TargetConfig: TargetConfig{TargetConfig: of.TargetConfig}, Cycle: of.Cycle}
				return monitor.task(field)
			},
		},
		calls(task.Trace, "Report calls of methods with the calls inside them.", task.LimitParameter, func(c *CallsConfig) (*task.Task, error) {
			return (&TraceConfig{CallsConfig: *c}).task(field)
		}),
		calls(task.Stack, "Report the callers of methods.", task.LimitParameter, func(c *CallsConfig) (*task.Task, error) { return c.stacks(field) }),
		calls(task.Watch, "Report parameters, object and result of calls.", task.LimitParameter, func(c *CallsConfig) (*task.Task, error) {
			return (&WatchConfig{CallsConfig: *c}).task(field)
		}),
		calls(task.Records, "Record calls, with parameters and results in the program's memory.", records, func(c *CallsConfig) (*task.Task, error) {
			return (&RecordsConfig{CallsConfig: *c}).task(field)
		}),
	}
}

// reset is the command that restores classes. It is disruptive: commands of other clients on the same classes report no
// more calls, and no later reset restores their classes.
var reset = server.Reset{
	Summary:    "Restore classes: remove the code of the commands of all clients. The receiver ends its own commands for it, and sends them again. Commands of other clients on these classes report no more calls.",
	Disruptive: true,
	Parameters: []agentcontrol.Parameter{
		task.ClassesParameter("Names of classes; default: all."),
		task.RegexpParameter("It is one of Java's regular expressions."),
	},
	Classes: func(arguments agentcontrol.Arguments) (javamethods.Classes, error) {
		classes, err := task.ClassesOf(arguments)
		if err == nil {
			err = arthas.CheckPattern(classes.Pattern)
		}
		return classes, err
	},
}
