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
	var all task.List
	for i := range c.Monitors {
		all.Add(c.Monitors[i].Task(fmt.Sprintf("monitors[%d]", i)))
	}
	for _, calls := range []struct {
		kind  task.Kind
		field string
		of    []CallsConfig
	}{{task.Trace, "traces", c.Traces}, {task.Stack, "stacks", c.Stacks}, {task.Records, "tt", c.Records}} {
		for i := range calls.of {
			all.Add(calls.of[i].Task(fmt.Sprintf("%s[%d]", calls.field, i), calls.kind))
		}
	}
	if len(c.Records) > 0 {
		all.Add(&task.Task{Kind: task.RecordList, Every: c.GP.RecordsInterval}, nil)
	}
	for i := range c.Classes {
		all.Add(c.Classes[i].task(fmt.Sprintf("classes[%d]", i), c.InventoryInterval))
	}
	for i := range c.Methods {
		all.Add(c.Methods[i].task(fmt.Sprintf("methods[%d]", i), c.InventoryInterval))
	}
	return all.Tasks()
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
