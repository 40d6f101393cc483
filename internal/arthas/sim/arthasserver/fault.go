// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthasserver

import (
	"fmt"
	"net/http"
	"slices"
)

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
