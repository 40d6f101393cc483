// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package calltree

import "errors"

// Errors of Store.Collect, beside its context's error.
var (
	// ErrNotThere: no calls or samples of that service and kind arrived before the window began.
	ErrNotThere = errors.New("no data of that service and kind has arrived")
	// ErrBusy: as many windows as allowed are open.
	ErrBusy = errors.New("too many windows are being collected: try again later")
)
