// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"slices"
)

// Fault is what a server does in place of a proper answer, or beside it.
type Fault int

// The faults. The server sends the proper answer beside the last ones, from FaultEvict on.
const (
	// FaultClose closes the connection without an answer.
	FaultClose Fault = iota + 1
	// FaultCut sends half of the answer.
	FaultCut
	// FaultEndless sends an answer that does not end.
	FaultEndless
	// FaultSlow sends an answer byte by byte, one in each PullWait.
	FaultSlow
	// FaultWrongType sends numbers as objects.
	FaultWrongType
	// FaultNotJSON sends a text that is no JSON.
	FaultNotJSON
	// FaultHTML sends a page.
	FaultHTML
	// FaultDeep sends a deeply nested answer.
	FaultDeep
	// FaultLarge sends a watched value of 63 MB, as the real server can.
	FaultLarge
	// FaultUnauthorized asks for a password.
	FaultUnauthorized
	// FaultEvict removes the queues of all sessions, as after five minutes without a pull.
	FaultEvict
	// FaultExpire ends all sessions.
	FaultExpire
	// FaultInterrupt ends all jobs, as another client can.
	FaultInterrupt
	// FaultRestart restarts the program.
	FaultRestart
	faults
)

var faultNames = [faults]string{
	FaultClose: "close", FaultCut: "cut", FaultEndless: "endless", FaultSlow: "slow", FaultWrongType: "wrong-type", FaultNotJSON: "not-json",
	FaultHTML: "html", FaultDeep: "deep", FaultLarge: "large", FaultUnauthorized: "unauthorized", FaultEvict: "evict", FaultExpire: "expire",
	FaultInterrupt: "interrupt", FaultRestart: "restart",
}

// Names returns the names of all faults.
func Names() []string { return faultNames[1:] }

// ParseFault returns the fault of a name.
func ParseFault(name string) (Fault, error) {
	if f := slices.Index(faultNames[:], name); f > 0 {
		return Fault(f), nil
	}
	return 0, fmt.Errorf("fault %q: expected one of %q", name, Names())
}
