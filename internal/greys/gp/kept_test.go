// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"slices"

	"github.com/callbraid/callbraid/internal/greys"
)

// kept returns a copy of a reply that stays valid.
func kept(reply greys.Reply) greys.Reply {
	switch r := reply.(type) {
	case *greys.Version:
		return ptr(*r)
	case *greys.Affected:
		return ptr(*r)
	case *greys.Sessions:
		return &greys.Sessions{ProcessID: r.ProcessID, Sessions: slices.Clone(r.Sessions)}
	case *greys.Statistics:
		return &greys.Statistics{Methods: slices.Clone(r.Methods)}
	case *greys.CallStack:
		return &greys.CallStack{Thread: r.Thread, Frames: slices.Clone(r.Frames)}
	case *greys.Record:
		return ptr(*r)
	case *greys.RecordDetail:
		return ptr(*r)
	case *greys.Class:
		return ptr(*r)
	case *greys.Method:
		return ptr(*r)
	default:
		panic(reply)
	}
}

func ptr[T any](value T) *T { return &value }
