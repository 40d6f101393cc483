// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strconv"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/javamethods/task"
)

// Action is the kind of an order.
type Action uint8

const (
	// Start starts Task.
	Start Action = iota
	// List lists the tasks.
	List
	// End ends the task with Number.
	End
	// Reset removes the instrumentation of commands from Classes.
	Reset
)

// Order is a request of an operator to a server.
type Order struct {
	Action  Action
	Task    task.Task
	Number  int
	Classes javamethods.Classes
	// result has a buffer of one.
	result chan Result
	// over is closed when the operator's request ends.
	over <-chan struct{}
}

// Result is the answer to an order, or its error.
type Result struct {
	Answer agentcontrol.Answer
	Err    error
}

// NewOrder returns an order whose result is needed until ctx ends.
func NewOrder(ctx context.Context, action Action) *Order {
	return &Order{Action: action, result: make(chan Result, 1), over: ctx.Done()}
}

// Result receives the first result of the order.
func (o *Order) Result() <-chan Result { return o.result }

// succeed and Fail set the result, unless it is set already.
func (o *Order) succeed(message string, details ...agentcontrol.Detail) {
	o.finish(Result{Answer: agentcontrol.Answer{Message: message, Details: details}})
}

func (o *Order) Fail(why *agentcontrol.Error) { o.finish(Result{Err: why}) }

func (o *Order) finish(r Result) {
	select {
	case o.result <- r:
	default:
	}
}

// isCancelled reports whether the operator's request has ended.
func (o *Order) isCancelled() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// ArgumentTask is the name of a task number in orders and answers.
const ArgumentTask = "task"

func taskDetail(number int) agentcontrol.Detail {
	return agentcontrol.Detail{Name: ArgumentTask, Value: strconv.Itoa(number)}
}
