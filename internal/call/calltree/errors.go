// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "errors"

// What Store.Collect can fail with, beside its context's error.
var (
	// ErrNotThere: nothing of that service and kind had come when the window began.
	ErrNotThere = errors.New("nothing has come of that service and kind")
	// ErrBusy: as many windows as are allowed are being collected.
	ErrBusy = errors.New("too many windows are being collected: try again later")
)
