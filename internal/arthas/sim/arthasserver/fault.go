// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"net/http"
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

// Inject makes the next answer to an action a fault.
func (srv *Server) Inject(action string, fault Fault) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.faults[action] = append(srv.faults[action], fault)
}

// fault returns the fault of the next answer to an action, or 0: an injected one, or the one whose turn it is.
func (srv *Server) fault(action string) (fault Fault) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if injected := srv.faults[action]; len(injected) > 0 {
		fault, srv.faults[action] = injected[0], injected[1:]
		return fault
	}
	s := &srv.settings
	if len(s.Faults) == 0 || s.FaultTimes > 0 && srv.turns == s.FaultTimes {
		return 0
	}
	if srv.replies++; srv.replies%s.FaultEvery != 0 {
		return 0
	}
	srv.turns++
	return s.Faults[(srv.turns-1)%len(s.Faults)]
}

// happen lets happen what a fault does beside the answer.
func (srv *Server) happen(fault Fault) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	switch fault {
	case FaultEvict:
		for _, s := range srv.sessions {
			s.consumers = slices.DeleteFunc(s.consumers, func(c *consumer) bool { return !c.polling })
		}
	case FaultExpire:
		srv.endSessions()
	case FaultInterrupt:
		for _, s := range srv.sessions {
			if s.job != nil && !s.job.isPacked {
				s.job.end(srv, 0, "")
			}
		}
	case FaultRestart:
		srv.restart()
	}
}

// largeAnswer is the length of the largest answer of a real server.
const largeAnswer = 63 << 20

// writeLarge sends an answer with a large value, which is proper JSON.
func (srv *Server) writeLarge(w http.ResponseWriter) {
	_, err := fmt.Fprintf(w, `{"state":"SUCCEEDED","body":{"results":[{"type":"watch","jobId":%d,"value":"`, srv.lastJob())
	block := slices.Repeat([]byte("x"), 64<<10)
	for sent := 0; sent < largeAnswer && err == nil; sent += len(block) {
		_, err = w.Write(block)
	}
	_, _ = w.Write([]byte(`"}]}}`)) // a client that has closed the connection does not read it
}

func (srv *Server) lastJob() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.jobs
}
