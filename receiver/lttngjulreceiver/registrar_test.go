// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/componentkit/budget"
)

// script is a listener that performs steps, and is closed afterwards.
type script struct {
	net.Listener
	steps []func() (net.Conn, error)
}

func (s *script) Accept() (net.Conn, error) {
	if len(s.steps) == 0 {
		return nil, net.ErrClosed
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step()
}

func TestTheReceiverAcceptsAgainAfterAnError(t *testing.T) {
	b := newBed(t, nil)
	ours, theirs := net.Pipe()
	tooMany := func() (net.Conn, error) { return nil, syscall.EMFILE }
	b.receiver.registrar.accept(&script{steps: []func() (net.Conn, error){
		tooMany, tooMany, func() (net.Conn, error) { return ours, nil },
	}})
	assert.EqualValues(t, 2, b.Counter("accept_errors"))
	assert.Equal(t, syscall.EMFILE.Error(), b.AwaitLine("The receiver could not accept a connection").ContextMap()["error"])
	assert.EqualValues(t, 1, b.Counter("connections"), "the one after them")
	require.NoError(t, theirs.Close())
	b.awaitNothingHeld()
}

func TestAConnectionDuringTheShutdownOpensNoMemoryAccount(t *testing.T) {
	b := newBed(t, nil)
	b.receiver.registrar.registry.close(time.Now())
	ours, theirs := net.Pipe()
	defer theirs.Close()
	before := accounts(b)
	b.receiver.registrar.admit(ours)
	assert.Equal(t, before, accounts(b))
}

// accounts returns the number of open accounts of the receiver in the memory budget.
func accounts(b *bed) (n int) {
	for _, u := range budget.Of(b.receiver.env.Collector).Usages() {
		if u.Group == b.receiver.kit.ID {
			n += u.Accounts
		}
	}
	return n
}
