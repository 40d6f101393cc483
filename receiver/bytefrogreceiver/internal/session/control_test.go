// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestABatchWaitsForEarlierMessagesOfTheControlConnection(t *testing.T) {
	busy := startedRun(t, discard(func(ptrace.Traces) {}))
	busy.control.ended = make(chan struct{})
	waited := make(chan time.Duration)
	await := func() {
		began := time.Now()
		busy.control.awaitCaughtUp()
		waited <- time.Since(began)
	}
	go await()
	assert.GreaterOrEqual(t, <-waited, controlPatience, "it does not wait forever")

	go await()
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = busy.control.in.Read(time.Now(), time.Time{}) })
	assert.Less(t, <-waited, controlPatience, "the reader of the control connection waits")
	busy.control.in.TakeAway()
	reading.Wait()
}
