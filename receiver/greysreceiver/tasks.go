// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// tasks returns the configured tasks. Errors name the fields.
func (c *Config) tasks() ([]*task.Task, error) {
	var all []*task.Task
	var wrong error
	add := func(t *task.Task, err error) {
		for _, other := range all {
			if err == nil && other.Kind == t.Kind && other.Pattern == t.Pattern {
				err = fmt.Errorf("%s has the patterns %s twice: name them once", t.Kind, t.Pattern)
			}
		}
		all, wrong = append(all, t), errors.Join(wrong, err)
	}
	for i := range c.Monitors {
		add(c.Monitors[i].task(fmt.Sprintf("monitors[%d]", i)))
	}
	for _, calls := range []struct {
		kind  task.Kind
		field string
		of    []CallsConfig
	}{{task.Trace, "traces", c.Traces}, {task.Stack, "stacks", c.Stacks}, {task.Records, "tt", c.Records}} {
		for i := range calls.of {
			add(calls.of[i].task(fmt.Sprintf("%s[%d]", calls.field, i), calls.kind))
		}
	}
	if len(c.Records) > 0 {
		add(&task.Task{Kind: task.RecordList, Every: c.GP.RecordsInterval}, nil)
	}
	for i := range c.Classes {
		add(c.Classes[i].task(fmt.Sprintf("classes[%d]", i), c.InventoryInterval))
	}
	for i := range c.Methods {
		add(c.Methods[i].task(fmt.Sprintf("methods[%d]", i), c.InventoryInterval))
	}
	return all, wrong
}

func (m *MonitorConfig) task(field string) (*task.Task, error) {
	target, err := m.target(field)
	cycle, wrong := m.cycle(field)
	return &task.Task{Kind: task.Monitor, Pattern: m.text(), Target: target, Cycle: cycle}, errors.Join(err, wrong)
}

func (c *CallsConfig) task(field string, kind task.Kind) (*task.Task, error) {
	target, err := c.target(field)
	limit, wrong := limitOf(field, c.Limit, defaultCalls)
	return &task.Task{Kind: kind, Pattern: c.text(), Target: target, Limit: limit}, errors.Join(err, wrong)
}

func (c *ClassesConfig) task(field string, every time.Duration) (*task.Task, error) {
	class, err := pattern(field+".class", c.Class, "com.example.*")
	limit, wrong := limitOf(field, c.Limit, defaultInventory)
	return &task.Task{
		Kind: task.Classes, Pattern: withRegexp(c.Class, c.Regexp), Target: javamethods.Target{Class: class, Regexp: c.Regexp}, Limit: limit, Every: every, Fields: c.Fields,
	}, errors.Join(err, wrong)
}

func (c *MethodsConfig) task(field string, every time.Duration) (*task.Task, error) {
	target, err := c.target(field)
	limit, wrong := limitOf(field, c.Limit, defaultInventory)
	return &task.Task{Kind: task.Methods, Pattern: c.text(), Target: target, Limit: limit, Every: every}, errors.Join(err, wrong)
}

// target returns the patterns. The error names the field.
func (t *TargetConfig) target(field string) (javamethods.Target, error) {
	class, err := pattern(field+".class", t.Class, "com.example.*")
	method, wrong := pattern(field+".method", t.Method, "*")
	return javamethods.Target{Class: class, Method: method, Regexp: t.Regexp}, errors.Join(err, wrong)
}

// text returns the patterns for log lines and metrics.
func (t *TargetConfig) text() string { return withRegexp(t.Class+" "+t.Method, t.Regexp) }

func withRegexp(text string, regexp bool) string {
	if regexp {
		text += " (regexp)"
	}
	return text
}

func pattern(field, text, example string) (javamethods.Pattern, error) {
	p, err := javamethods.NewPattern(text)
	if err != nil {
		return p, fmt.Errorf("%s: %w: set it to a pattern of names, such as %s", field, err, example)
	}
	return p, nil
}

// limitOf returns the configured or the default limit; 0 means no limit.
func limitOf(field string, value, standard int) (javamethods.Limit, error) {
	switch {
	case value == 0:
		return javamethods.Limit(standard), nil
	case value == unlimited:
		return 0, nil
	case value < 0 || value > math.MaxInt32:
		return 0, fmt.Errorf("%s.limit is %d: set it to 1 to %d, or to %d for none", field, value, math.MaxInt32, unlimited)
	default:
		return javamethods.Limit(value), nil
	}
}

// cycle returns the configured or the default cycle of a monitor.
func (m *MonitorConfig) cycle(field string) (time.Duration, error) {
	if m.Cycle == 0 {
		return defaultCycle, nil
	}
	if m.Cycle%time.Second != 0 || m.Cycle < time.Second || m.Cycle > maxCycle {
		return 0, fmt.Errorf("%s.cycle is %v: set it to whole seconds, 1s to 24h", field, m.Cycle)
	}
	return m.Cycle, nil
}
