// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff says how long to pause before something that failed is tried again.
// It knows no clock: whoever tries waits.
package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config are the bounds of pauses: one is between half of what doubles from
// InitialInterval on and one and a half, by chance, and never more than MaxInterval.
type Config struct {
	InitialInterval time.Duration `mapstructure:"initial_interval"`
	MaxInterval     time.Duration `mapstructure:"max_interval"`
}

// ValidateAs says what is wrong with the configuration, which is that of a field. No
// pause may be longer than most.
func (c Config) ValidateAs(field string, most time.Duration) error {
	if err := setting.Within(field+".initial_interval", c.InitialInterval, time.Millisecond, most); err != nil {
		return err
	}
	return setting.Within(field+".max_interval", c.MaxInterval, c.InitialInterval, most)
}

// Backoff is the pauses between tries: longer from try to try, and not everywhere the
// same. It is for one goroutine.
type Backoff struct {
	config Config
	// next is what the next pause is by its middle; 0: config.InitialInterval.
	next time.Duration
}

// New is a back-off of which no try has failed yet.
func New(config Config) *Backoff { return &Backoff{config: config} }

// Pause is how long to pause after another try that failed: by chance, so that those who
// failed together don't come back together.
func (b *Backoff) Pause() time.Duration {
	pause := max(b.next, b.config.InitialInterval)
	b.next = min(2*pause, b.config.MaxInterval)
	return min(pause/2+rand.N(pause), b.config.MaxInterval)
}

// Reset says that a try succeeded: the next pause is the first again.
func (b *Backoff) Reset() { b.next = 0 }
