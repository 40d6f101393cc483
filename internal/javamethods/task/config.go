// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/callbraid/callbraid/internal/javamethods"
)

const (
	defaultCycle = 10 * time.Second
	// MaxCycle is the maximum length of a cycle.
	MaxCycle = 24 * time.Hour
	// DefaultCalls is the number of calls after which a command ends, if none is configured.
	DefaultCalls = 100
	// Unlimited is the value for no limit.
	Unlimited = -1
)

// TargetConfig selects methods of classes.
type TargetConfig struct {
	// Class matches qualified names of classes. Method matches simple names of methods.
	Class  string `mapstructure:"class"`
	Method string `mapstructure:"method"`
	// Regexp makes both Java regular expressions.
	Regexp bool `mapstructure:"regexp"`
}

// MonitorConfig counts calls of methods.
type MonitorConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Cycle is the length of a cycle in whole seconds; 0 means 10s.
	Cycle time.Duration `mapstructure:"cycle"`
}

// CallsConfig reports single calls of methods.
type CallsConfig struct {
	TargetConfig `mapstructure:",squash"`
	// Limit is the number of calls after which the command ends, for the life of the process; 0 means 100, -1 no limit.
	Limit int `mapstructure:"limit"`
}

// List collects configured tasks and their errors.
type List struct {
	tasks []*Task
	err   error
}

// Add adds a task and its error. A kind must not have the same patterns twice.
func (l *List) Add(t *Task, err error) {
	for _, other := range l.tasks {
		if err == nil && other.Kind == t.Kind && other.Pattern == t.Pattern {
			err = fmt.Errorf("%s has the patterns %s twice: name them once", t.Kind, t.Pattern)
		}
	}
	l.tasks, l.err = append(l.tasks, t), errors.Join(l.err, err)
}

// Tasks returns the tasks, and all errors.
func (l *List) Tasks() ([]*Task, error) { return l.tasks, l.err }

// Task returns the task. The error names the field.
func (m *MonitorConfig) Task(field string) (*Task, error) {
	target, err := m.Target(field)
	cycle, wrong := m.cycle(field)
	return &Task{Kind: Monitor, Pattern: m.Text(), Target: target, Cycle: cycle}, errors.Join(err, wrong)
}

// Task returns the task of a kind. The error names the field.
func (c *CallsConfig) Task(field string, kind Kind) (*Task, error) {
	target, err := c.Target(field)
	limit, wrong := LimitOf(field, c.Limit, DefaultCalls)
	return &Task{Kind: kind, Pattern: c.Text(), Target: target, Limit: limit}, errors.Join(err, wrong)
}

// Target returns the patterns. The error names the field.
func (t *TargetConfig) Target(field string) (javamethods.Target, error) {
	class, err := Pattern(field+".class", t.Class, "com.example.*")
	method, wrong := Pattern(field+".method", t.Method, "*")
	return javamethods.Target{Class: class, Method: method, Regexp: t.Regexp}, errors.Join(err, wrong)
}

// Text returns the patterns for log lines and metrics.
func (t *TargetConfig) Text() string { return Text(t.Class+" "+t.Method, t.Regexp) }

// Text returns the text of patterns for log lines and metrics.
func Text(text string, regexp bool) string {
	if regexp {
		text += " (regexp)"
	}
	return text
}

// Pattern returns a pattern of a field. The error names the field, and an example of names.
func Pattern(field, text, example string) (javamethods.Pattern, error) {
	p, err := javamethods.NewPattern(text)
	if err != nil {
		return p, fmt.Errorf("%s: %w: set it to a pattern of names, such as %s", field, err, example)
	}
	return p, nil
}

// LimitOf returns the configured or the default limit; 0 means no limit.
func LimitOf(field string, value, standard int) (javamethods.Limit, error) {
	switch {
	case value == 0:
		return javamethods.Limit(standard), nil
	case value == Unlimited:
		return 0, nil
	case value < 0 || value > math.MaxInt32:
		return 0, fmt.Errorf("%s.limit is %d: set it to 1 to %d, or to %d for none", field, value, math.MaxInt32, Unlimited)
	default:
		return javamethods.Limit(value), nil
	}
}

// cycle returns the configured or the default cycle of a monitor.
func (m *MonitorConfig) cycle(field string) (time.Duration, error) {
	if m.Cycle == 0 {
		return defaultCycle, nil
	}
	if m.Cycle%time.Second != 0 || m.Cycle < time.Second || m.Cycle > MaxCycle {
		return 0, fmt.Errorf("%s.cycle is %v: set it to whole seconds, 1s to 24h", field, m.Cycle)
	}
	return m.Cycle, nil
}
