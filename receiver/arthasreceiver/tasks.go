// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"errors"
	"fmt"
	"math"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/link"
)

// tasks returns the configured tasks. Errors name the fields.
func (c *Config) tasks() ([]*task.Task, error) {
	var all task.List
	for i := range c.Monitors {
		all.Add(c.Monitors[i].task(fmt.Sprintf("monitors[%d]", i)))
	}
	for i := range c.Traces {
		all.Add(c.Traces[i].task(fmt.Sprintf("traces[%d]", i)))
	}
	for i := range c.Stacks {
		all.Add(c.Stacks[i].stacks(fmt.Sprintf("stacks[%d]", i)))
	}
	for i := range c.Watches {
		all.Add(c.Watches[i].task(fmt.Sprintf("watches[%d]", i)))
	}
	for i := range c.Records {
		all.Add(c.Records[i].task(fmt.Sprintf("records[%d]", i)))
	}
	return all.Tasks()
}

// own makes a task with the options of Arthas. command returns its command with the rest of the limit.
func own(t *task.Task, command func(t *task.Task, limit arthas.Limit) arthas.Command) *task.Task {
	t.Own = func(t *task.Task, rest javamethods.Limit) javamethods.Command {
		within := func(limit arthas.Limit) arthas.Command { return command(t, limit) }
		return link.Command{Within: within, Limit: arthas.Limit(rest), Classes: t.Classes(), Cycle: t.Cycle}
	}
	return t
}

func (m *MonitorConfig) task(field string) (*task.Task, error) {
	shared := task.MonitorConfig{TargetConfig: m.TargetConfig.TargetConfig, Cycle: m.Cycle}
	t, err := shared.Task(field)
	target, condition, wrong := m.options(field, t)
	return own(t, func(t *task.Task, limit arthas.Limit) arthas.Command {
		return arthas.MonitorCommand{Target: target, Cycle: t.Cycle, Limit: limit, Condition: condition}
	}), errors.Join(err, wrong)
}

func (c *TraceConfig) task(field string) (*task.Task, error) {
	t, target, condition, err := c.calls(field, task.Trace)
	return own(t, func(_ *task.Task, limit arthas.Limit) arthas.Command {
		return arthas.TraceCommand{Target: target, Limit: limit, Condition: condition, JDKMethods: c.JDKMethods}
	}), err
}

func (c *CallsConfig) stacks(field string) (*task.Task, error) {
	t, target, condition, err := c.calls(field, task.Stack)
	return own(t, func(_ *task.Task, limit arthas.Limit) arthas.Command {
		return arthas.StackCommand{Target: target, Limit: limit, Condition: condition}
	}), err
}

func (c *RecordsConfig) task(field string) (*task.Task, error) {
	t, target, condition, err := c.calls(field, task.Records)
	if c.Limit == task.Unlimited || c.Limit > maxRecords {
		err = errors.Join(err, fmt.Errorf("%s.limit is %d: set it to 1 to %d, because recorded calls stay in the memory of the program", field, c.Limit, maxRecords))
	}
	own(t, func(_ *task.Task, limit arthas.Limit) arthas.Command {
		return arthas.RecordCommand{Target: target, Limit: limit, Condition: condition}
	})
	return changed(t, func(of *link.Command) { of.Forgets = !c.Keep }), err
}

func (w *WatchConfig) task(field string) (*task.Task, error) {
	t, target, condition, err := w.calls(field, task.Watch)
	command := arthas.WatchCommand{Target: target, Depth: int32(w.Depth), Condition: condition}
	for _, point := range w.Points {
		switch point {
		case "before":
			command.Before = true
		case "success":
			command.Success = true
		case "exception":
			command.Exception = true
		case "finish":
			command.Finish = true
		default:
			err = errors.Join(err, fmt.Errorf("%s.points has %q: set it to before, success, exception or finish", field, point))
		}
	}
	identified, deepest := w.TraceID != "", maxDepth
	if identified {
		deepest-- // the list with the IDs is a level
	}
	if w.Depth < 0 || w.Depth > deepest {
		err = errors.Join(err, fmt.Errorf("%s.depth is %d: set it to 1 to %d, or to 0 for the server's 1", field, w.Depth, deepest))
	}
	if w.SpanID != "" && !identified {
		err = errors.Join(err, fmt.Errorf("%s.span_id is set without trace_id: set both", field))
	}
	value := w.Expression
	if value == "" && (identified || condition != (arthas.Expression{})) {
		// A condition needs a value, and so do IDs. This is the server's own.
		value = "{params, target, returnObj}"
	}
	for _, e := range []struct {
		name, text string
		into       *arthas.Expression
	}{{"expression", value, &command.Value}, {"trace_id", w.TraceID, &command.TraceID}, {"span_id", w.SpanID, &command.SpanID}} {
		if e.text == "" {
			continue
		}
		var wrong error
		if *e.into, wrong = arthas.NewExpression(e.text); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s.%s: %w", field, e.name, wrong))
		}
	}
	if err == nil {
		if _, wrong := arthas.CommandLine(command); wrong != nil {
			err = fmt.Errorf("%s: %w", field, wrong)
		}
	}
	own(t, func(_ *task.Task, limit arthas.Limit) arthas.Command {
		limited := command
		limited.Limit = limit
		return limited
	})
	return changed(t, func(c *link.Command) { c.Identified = identified }), err
}

// changed changes the commands of a task.
func changed(t *task.Task, change func(*link.Command)) *task.Task {
	command := t.Own
	t.Own = func(t *task.Task, rest javamethods.Limit) javamethods.Command {
		of := command(t, rest).(link.Command)
		change(&of)
		return of
	}
	return t
}

// calls returns a task of single calls with the options of its target.
func (c *CallsConfig) calls(field string, kind task.Kind) (*task.Task, arthas.Target, arthas.Expression, error) {
	shared := task.CallsConfig{TargetConfig: c.TargetConfig.TargetConfig, Limit: c.Limit}
	t, err := shared.Task(field, kind)
	target, condition, wrong := c.options(field, t)
	return t, target, condition, errors.Join(err, wrong)
}

// options returns the target of a task with Arthas' options, and its condition. The error names the field.
func (c *TargetConfig) options(field string, t *task.Task) (target arthas.Target, condition arthas.Expression, err error) {
	target.Target = t.Target
	for _, p := range []struct {
		name    string
		pattern javamethods.Pattern
	}{{"class", target.Class}, {"method", target.Method}} {
		if wrong := arthas.CheckPattern(p.pattern); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s.%s: %w: set it to a pattern of names", field, p.name, wrong))
		}
	}
	if c.Exclude != "" {
		var wrong error
		if target.Exclude, wrong = arthas.NewPattern(c.Exclude); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s.exclude: %w: set it to a pattern of names, such as com.example.Test*", field, wrong))
		}
	}
	if c.MaxClasses < 0 || c.MaxClasses > math.MaxInt32 {
		err = errors.Join(err, fmt.Errorf("%s.max_classes is %d: set it to 1 to %d, or to 0 for the server's 50", field, c.MaxClasses, math.MaxInt32))
	}
	target.MaxClasses = int32(c.MaxClasses)
	switch {
	case c.LongerThan < 0:
		err = errors.Join(err, fmt.Errorf("%s.longer_than is %v: set it to at least 0", field, c.LongerThan))
	case c.LongerThan > 0:
		condition = arthas.LongerThan(c.LongerThan)
	}
	return target, condition, err
}
