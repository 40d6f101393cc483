// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/testkit/profiletest"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/process"
)

// Any message of a server, among correct messages, leaves everything within its bounds, and
// profiles valid.
func FuzzReceive(f *testing.F) {
	for _, name := range []string{"samples", "documented-30s"} {
		for _, m := range openCapture(f, name).Messages {
			if len(m.Data) < 20_000 {
				f.Add(m.Data)
			}
		}
	}
	for i := range rbkitserver.GarbageKinds() {
		if g := rbkitserver.Garbage(i); len(g) < 20_000 {
			f.Add(g)
		}
	}
	object := wholeMessage(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		b, s := alone(t, func(_ *bed, c *Config) {
			c.DumpReferences = true
			c.Limits.MaxTrackedObjects, c.Limits.MaxClasses, c.Limits.MaxFiles, c.Limits.MaxSites = 10, 3, 3, 4
			c.Limits.MaxDumpObjects, c.Limits.MaxProfileStacks = 5, 3
		})
		env := b.receiver.out
		s.Begin(origin.Identity{})
		for _, m := range [][]byte{object, message, object, message} {
			s.Receive(zmtp.Message{m})
		}
		b.finish(s)
		state := stateOf(s)
		require.LessOrEqual(t, len(state.Classes), 3+int(names.First))
		require.LessOrEqual(t, len(state.Sites), 4+1)
		require.LessOrEqual(t, state.Tracked, 10)
		_ = env.metrics.metrics([]process.State{state}, env.Now())
		for _, p := range b.Profiles.AllProfiles() {
			profiletest.CheckValid(t, p)
		}
	})
}

// wholeMessage is a message that is as it should be.
func wholeMessage(f *testing.F) []byte {
	return only(openCapture(f, "samples"), "documented-with-gc_start").Messages[0].Data
}
