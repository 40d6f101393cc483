// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff computes the pauses between tries of a failing operation. It has no clock: the caller waits.
package backoff

import (
	"math/rand/v2"
	"time"

	"github.com/callbraid/callbraid/internal/componentkit/setting"
)

// Config has the bounds of pauses. An interval doubles from InitialInterval with each try. A pause is a random time from
// half to one and a half of the interval, and at most MaxInterval.
type Config struct {
	InitialInterval time.Duration `mapstructure:"initial_interval"`
	MaxInterval     time.Duration `mapstructure:"max_interval"`
}

// ValidateAs returns an error if the configuration of a field is wrong, or if a pause may be longer than most.
func (c Config) ValidateAs(field string, most time.Duration) error {
	if err := setting.Within(field+".initial_interval", c.InitialInterval, time.Millisecond, most); err != nil {
		return err
	}
	return setting.Within(field+".max_interval", c.MaxInterval, c.InitialInterval, most)
}

// Backoff has the pauses between tries. They grow from try to try, and are random. One goroutine at a time may use it.
type Backoff struct {
	config Config
	// next is the interval of the next pause; 0: config.InitialInterval.
	next time.Duration
}

// New returns a Backoff before its first failure.
func New(config Config) *Backoff { return &Backoff{config: config} }

// Pause returns the pause after another failure. It is random, so that clients that failed together do not return
// together.
func (b *Backoff) Pause() time.Duration {
	pause := max(b.next, b.config.InitialInterval)
	b.next = min(2*pause, b.config.MaxInterval)
	return min(pause/2+rand.N(pause), b.config.MaxInterval)
}

// Reset notes a success: the next pause is as short as the first.
func (b *Backoff) Reset() { b.next = 0 }
