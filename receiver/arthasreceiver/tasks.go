// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasreceiver

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// tasks returns the configured tasks. Errors name the fields.
func (c *Config) tasks() ([]*task.Task, error) {
	var all []*task.Task
	var wrong error
	add := func(t task.Task, err error) {
		t.Number = len(all) + 1
		for _, other := range all {
			if err == nil && other.Kind == t.Kind && other.Pattern == t.Pattern {
				err = fmt.Errorf("%v has the patterns %s twice: name them once", t.Kind, t.Pattern)
			}
		}
		all, wrong = append(all, &t), errors.Join(wrong, err)
	}
	for i := range c.Monitors {
		add(c.Monitors[i].task(fmt.Sprintf("monitors[%d]", i)))
	}
	for i := range c.Traces {
		t, err := c.Traces[i].CallsConfig.task(fmt.Sprintf("traces[%d]", i), task.Trace)
		t.JDKMethods = c.Traces[i].JDKMethods
		add(t, err)
	}
	for i := range c.Stacks {
		add(c.Stacks[i].task(fmt.Sprintf("stacks[%d]", i), task.Stack))
	}
	for i := range c.Watches {
		add(c.Watches[i].task(fmt.Sprintf("watches[%d]", i)))
	}
	for i := range c.Records {
		field := fmt.Sprintf("records[%d]", i)
		t, err := c.Records[i].task(field, task.Record)
		if t.Limit == task.Unlimited || t.Limit > maxRecords {
			err = errors.Join(err, fmt.Errorf("%s.limit is %d: set it to 1 to %d, because recorded calls stay in the memory of the program", field, c.Records[i].Limit, maxRecords))
		}
		add(t, err)
	}
	return all, wrong
}

func (m *MonitorConfig) task(field string) (task.Task, error) {
	t, err := m.TargetConfig.task(field, task.Monitor)
	t.Cycle = m.Cycle
	switch {
	case m.Cycle == 0:
		t.Cycle = defaultCycle
	case m.Cycle%time.Second != 0 || m.Cycle < time.Second || m.Cycle > maxCycle:
		err = errors.Join(err, fmt.Errorf("%s.cycle is %v: set it to whole seconds, 1s to 24h", field, m.Cycle))
	}
	return t, err
}

func (c *CallsConfig) task(field string, kind task.Kind) (task.Task, error) {
	t, err := c.TargetConfig.task(field, kind)
	switch {
	case c.Limit == 0:
		t.Limit = defaultCalls
	case c.Limit == unlimited:
		t.Limit = task.Unlimited
	case c.Limit < 0 || c.Limit > math.MaxInt32:
		err = errors.Join(err, fmt.Errorf("%s.limit is %d: set it to 1 to %d, or to %d for none", field, c.Limit, math.MaxInt32, unlimited))
	default:
		t.Limit = int64(c.Limit)
	}
	return t, err
}

func (w *WatchConfig) task(field string) (task.Task, error) {
	t, err := w.CallsConfig.task(field, task.Watch)
	for _, point := range w.Points {
		switch point {
		case "before":
			t.Before = true
		case "success":
			t.Success = true
		case "exception":
			t.Exception = true
		case "finish":
			t.Finish = true
		default:
			err = errors.Join(err, fmt.Errorf("%s.points has %q: set it to before, success, exception or finish", field, point))
		}
	}
	if w.Depth < 0 || w.Depth > maxDepth {
		err = errors.Join(err, fmt.Errorf("%s.depth is %d: set it to 1 to %d, or to 0 for the server's 1", field, w.Depth, maxDepth))
	}
	t.Depth = int32(w.Depth)
	if w.Expression != "" || t.Condition != (arthas.Expression{}) {
		// A condition needs a value. This is the server's own.
		const parametersObjectResult = "{params, target, returnObj}"
		text := w.Expression
		if text == "" {
			text = parametersObjectResult
		}
		value, wrong := arthas.NewExpression(text)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s.expression: %w", field, wrong))
		}
		t.Value = value
	}
	return t, err
}

// task returns a task with the patterns. The error names the field.
func (c *TargetConfig) task(field string, kind task.Kind) (task.Task, error) {
	class, err := pattern(field+".class", c.Class, "com.example.*")
	method, wrong := pattern(field+".method", c.Method, "*")
	err = errors.Join(err, wrong)
	t := task.Task{Kind: kind, Pattern: c.Class + " " + c.Method}
	t.Target = arthas.Target{Target: javamethods.Target{Class: class, Method: method, Regexp: c.Regexp}}
	if c.Regexp {
		t.Pattern += " (regexp)"
	}
	if c.Exclude != "" {
		t.Target.Exclude, wrong = pattern(field+".exclude", c.Exclude, "com.example.Test*")
		err = errors.Join(err, wrong)
	}
	if c.MaxClasses < 0 || c.MaxClasses > math.MaxInt32 {
		err = errors.Join(err, fmt.Errorf("%s.max_classes is %d: set it to 1 to %d, or to 0 for the server's 50", field, c.MaxClasses, math.MaxInt32))
	}
	t.Target.MaxClasses = int32(c.MaxClasses)
	switch {
	case c.LongerThan < 0:
		err = errors.Join(err, fmt.Errorf("%s.longer_than is %v: set it to at least 0", field, c.LongerThan))
	case c.LongerThan > 0:
		t.Condition = arthas.LongerThan(c.LongerThan)
	}
	return t, err
}

func pattern(field, text, example string) (javamethods.Pattern, error) {
	p, err := arthas.NewPattern(text)
	if err != nil {
		return p, fmt.Errorf("%s: %w: set it to a pattern of names, such as %s", field, err, example)
	}
	return p, nil
}
