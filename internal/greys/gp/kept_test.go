// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package gp

import (
	"slices"

	"github.com/callbraid/callbraid/internal/javamethods"
)

// kept returns a copy of a reply that stays valid.
func kept(reply javamethods.Reply) javamethods.Reply {
	switch r := reply.(type) {
	case *javamethods.Version:
		return ptr(*r)
	case *javamethods.Affected:
		return ptr(*r)
	case *javamethods.Sessions:
		return &javamethods.Sessions{ProcessID: r.ProcessID, Sessions: slices.Clone(r.Sessions)}
	case *javamethods.Statistics:
		return &javamethods.Statistics{Methods: slices.Clone(r.Methods)}
	case *javamethods.CallStack:
		return &javamethods.CallStack{Thread: r.Thread, Frames: slices.Clone(r.Frames)}
	case *javamethods.Record:
		return ptr(*r)
	case *javamethods.RecordDetail:
		return ptr(*r)
	case *javamethods.Class:
		return ptr(*r)
	case *javamethods.Method:
		return ptr(*r)
	default:
		panic(reply)
	}
}

func ptr[T any](value T) *T { return &value }
