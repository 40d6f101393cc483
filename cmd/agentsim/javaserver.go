// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// untilInterrupted returns a context that ends at an interrupt, or after the time of --duration; 0 means no end.
func untilInterrupted(ctx context.Context, duration time.Duration) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	if duration == 0 {
		return ctx, stop
	}
	ctx, end := context.WithTimeout(ctx, duration)
	return ctx, func() {
		end()
		stop()
	}
}

// restartRegularly restarts a server's process at the interval of --restart-every, until ctx ends; 0 means never.
func restartRegularly(ctx context.Context, interval time.Duration, restart func()) {
	for interval > 0 {
		pause(ctx, interval)
		if ctx.Err() != nil {
			return
		}
		restart()
	}
}

// writeTruth writes what happened in each life of a server's process to the file of --truth, if there is one.
func writeTruth[T any](file string, lives []T) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(lives, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
