// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"time"
)

// Finish waits for the end of what a shutdown hands on, for at most the time timeout or
// as long as ctx goes on; then it calls drop, which has to cancel Settings.Context, and
// waits for at most overtime more, for what doesn't depend on the pipeline. It reports
// whether the end has come, and has called drop whatever came.
func Finish(ctx context.Context, end <-chan struct{}, timeout, overtime time.Duration, drop func()) bool {
	defer drop()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-end:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	drop()
	timer.Reset(overtime)
	select {
	case <-end:
		return true
	case <-timer.C:
		return false
	}
}
