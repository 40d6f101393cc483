// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttngagent"
)

// holdLookups has all look-ups of processes wait until the function that it gives is
// called.
func (b *bed) holdLookups() (release func()) {
	for range maxLookups {
		b.receiver.env.lookups <- struct{}{}
	}
	return func() {
		for range maxLookups {
			<-b.receiver.env.lookups
		}
	}
}

func TestAnApplicationDoesNotWaitUntilItIsKnownWhoseItsAgentIs(t *testing.T) {
	for name, code := range map[string]lttngagent.Code{"enabled": lttngagent.Success, "refused": lttngagent.Invalid} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *Config) { c.Enable = []EnableRule{{Domain: "jul", Logger: "*"}} })
			release := b.holdLookups()
			a := b.register(lttngagent.JUL)
			require.IsType(t, lttngagent.Enable{}, a.next())
			a.answer(code)
			require.Equal(t, lttngagent.RegistrationDone{}, a.next())
			assert.Empty(t, b.logs.all(), "it is not known yet whose they are")
			release()
			require.Equal(t, lttngagent.List{}, a.next())
			a.list()
			b.awaitRecords(eventRegistered, 1)
			if code != lttngagent.Success {
				b.awaitRecords(eventRefused, 1)
			}
			assert.Equal(t, eventRegistered, b.logs.all()[0].event)
		})
	}
}
