// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package session runs the tasks of one Arthas server: it identifies the process, ends the sessions that a killed
// collector left, runs each task in a session of its own, and restores the instrumented classes. It knows no pipeline.
//
// # States
//
//	server: unreached ──► identified ──► restored ──► running ──► unreached, and again after a pause
//	task:   due ──► running ──► over: its limit is reached in this process
//	         ▲         │
//	         └─────────┴── interrupted by the server, or nothing matched: after a pause
//
// All tasks run until one of them finds that the server is lost. Then all end, and the server is identified again. Another
// process begins with new limits. The same process continues: the sessions that are still open there are ended first.
//
// # Resets
//
// The server keeps classes instrumented when a job ends. A reset during a job leaves the job's classes instrumented, and no
// later reset restores them. So a reset is sent for the classes of an ended job only when no running job of the server may
// match one of them.
package session

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/componentkit/backoff"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/remembered"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/task"
)

// Settings are the settings of a [Server].
type Settings struct {
	Client *arthas.Client
	Tasks  []*task.Task
	// JVMInterval is the interval of requests for the state of the JVM; 0 means none.
	JVMInterval time.Duration
	// PollInterval is the pause before the next poll of a task without waiting results.
	PollInterval time.Duration
	// StateInterval is the interval of identity checks.
	StateInterval time.Duration
	// Reconnect are the pauses before a server or a task is tried again.
	Reconnect backoff.Config
	Store     *remembered.Store
	// Leaving ends when the time to end sessions at a shutdown is over.
	Leaving context.Context
	Output  Output
	Logger  *zap.Logger
	Now     func() time.Time
}

// Process is the process that a server is attached to.
type Process struct {
	remembered.Process
	Version string
}

// Output accepts the results of a server. Several goroutines call it.
type Output interface {
	// Began reports an identified process: isNew if it is another one than before.
	Began(process Process, isNew bool)
	// Lost reports that the server is lost, or that the receiver ends.
	Lost(why error)
	// Result accepts a result of a task.
	Result(t *task.Task, result arthas.Result, received Received)
	// JVM accepts the state of the JVM. Either may be nil.
	JVM(dashboard *arthas.Dashboard, properties *arthas.JVM)
	// Problem reports that a task does not run: unmatched if no class matches.
	Problem(t *task.Task, unmatched bool, why error)
	// Released reports that a monitor has ended.
	Released(t *task.Task)
	// Count changes a count.
	Count(what Count, n int64)
}

// Received has the time of receipt of a result.
type Received struct {
	At time.Time
	// Zone is the time zone of the process, or nil.
	Zone *time.Location
}

// Count is a count of a server.
type Count uint8

// The counts.
const (
	// CountFailed counts connections that failed or were lost.
	CountFailed Count = iota
	// CountResults counts results of tasks.
	CountResults
	// CountMalformed counts results that could not be read.
	CountMalformed
	// CountUnbegun counts durations that are none.
	CountUnbegun
	// CountLost counts results that are known to be lost.
	CountLost
	// CountOverflows counts overflows of queues: certain ones, and CountFullQueues those that are possible.
	CountOverflows
	CountFullQueues
	// CountBrokenPages counts answers with results that did not arrive.
	CountBrokenPages
	// CountEvictions counts removals of queues by the server.
	CountEvictions
	// CountGaps counts the evictions that lost results.
	CountGaps
	// CountExecOverflows counts answers whose results did not fit.
	CountExecOverflows
	// CountUnhealthy counts jobs that the server interrupted because nothing polled.
	CountUnhealthy
	// CountRestarted counts jobs that were started again.
	CountRestarted
	// CountResets counts resets, and CountFailedResets failed ones.
	CountResets
	CountFailedResets
	// CountLeftovers counts sessions of an earlier connection that were ended.
	CountLeftovers
	Counts
)
