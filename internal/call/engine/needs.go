// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/componentkit/nesting"
)

const (
	// maxUnmet bounds the needs that are remembered and logged. Receivers have far fewer, and
	// hostile clients may send any number.
	maxUnmet = 32
	// unmetTime is the time after which a full memory of needs is cleared, so that hostile
	// needs do not hide those of receivers for good.
	unmetTime = time.Hour
)

// unmet are the logged needs of receivers that the settings do not meet.
type unmet struct {
	mu     sync.Mutex
	logged map[callevent.Need]bool
	// since is when the first of these was logged.
	since time.Duration
}

// remember remembers a need, and reports whether it is new and has room.
func (u *unmet) remember(n callevent.Need, now time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.logged) == maxUnmet && now-u.since >= unmetTime {
		u.logged = nil
	}
	if u.logged[n] || len(u.logged) == maxUnmet {
		return false
	}
	if u.logged == nil {
		u.logged, u.since = map[callevent.Need]bool{}, now
	}
	u.logged[n] = true
	return true
}

// check warns once of each need in a batch that the configuration does not meet. Few batches
// have needs.
func (u *unmet) check(span ptrace.Span, c *Config, now time.Duration, logger *zap.Logger) {
	warn := func(setting string, value int64, field func(string, int64) zap.Field) {
		for _, need := range callevent.NeedsOf(span, setting, value) {
			need.Because = strings.Clone(nesting.Cut(need.Because))
			if u.remember(need, now) {
				logger.Warn("A setting of stack_pairing is too small for a receiver's setting: late calls are truncated. Raise the setting of stack_pairing, or lower the receiver's",
					zap.String("setting", setting), field("value", value), field("expected_more_than", need.MoreThan), zap.String("receiver", need.Because))
			}
		}
	}
	warn("reorder.max_wait", int64(c.Reorder.MaxWait), duration)
	warn("reorder.max_events", int64(c.Reorder.MaxEvents), zap.Int64)
	warn("idle_timeout", int64(c.IdleTimeout), duration)
}

func duration(key string, nanoseconds int64) zap.Field {
	return zap.Duration(key, time.Duration(nanoseconds))
}
