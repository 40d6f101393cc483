// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"errors"
	"fmt"
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
		add(c.Monitors[i].Task(fmt.Sprintf("monitors[%d]", i)))
	}
	for _, calls := range []struct {
		kind  task.Kind
		field string
		of    []CallsConfig
	}{{task.Trace, "traces", c.Traces}, {task.Stack, "stacks", c.Stacks}, {task.Records, "tt", c.Records}} {
		for i := range calls.of {
			add(calls.of[i].Task(fmt.Sprintf("%s[%d]", calls.field, i), calls.kind))
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

func (c *ClassesConfig) task(field string, every time.Duration) (*task.Task, error) {
	class, err := task.Pattern(field+".class", c.Class, "com.example.*")
	limit, wrong := task.LimitOf(field, c.Limit, defaultInventory)
	return &task.Task{
		Kind: task.Classes, Pattern: task.Text(c.Class, c.Regexp), Target: javamethods.Target{Class: class, Regexp: c.Regexp}, Limit: limit, Every: every, Fields: c.Fields,
	}, errors.Join(err, wrong)
}

func (c *MethodsConfig) task(field string, every time.Duration) (*task.Task, error) {
	target, err := c.Target(field)
	limit, wrong := task.LimitOf(field, c.Limit, defaultInventory)
	return &task.Task{Kind: task.Methods, Pattern: c.Text(), Target: target, Limit: limit, Every: every}, errors.Join(err, wrong)
}
