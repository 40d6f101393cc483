// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"time"
)

// Finish waits for a shutdown's hand-overs, whose end closes the channel end. It reports whether they ended.
//
//  1. It waits until timeout or the end of ctx.
//  2. It calls drop, which must cancel Settings.Context.
//  3. It waits for at most overtime, for work that does not depend on the pipeline.
//
// It calls drop in any case, and maybe twice.
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
