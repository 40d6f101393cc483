// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/testkit/lttng"
	"github.com/callbraid/callbraid/test/kit"
)

// Java's agent writes modified UTF-8: two surrogates for a character above U+FFFF, and two bytes for NUL.
func TestTextsOfAJavaProgramArriveUnchanged(t *testing.T) {
	t.Parallel()
	daemons := lttng.Start(t)
	c := kit.Start(t, reader(daemons.Relay.Live))
	session := daemons.Create(t, lttng.Session{Name: "texts"})
	daemons.RunJava(t, daemons.BuildJava(t, "testdata/lttng/Texts.java"))
	session.Destroy(t)
	awaitClosed(t, c, 1)
	c.Stop(t)

	var bodies, functions []string
	for _, r := range readLogs(t, c) {
		bodies = append(bodies, r.Body().AsString())
	}
	for _, e := range readStreams(t, c, "spans.bin") {
		for i := range e.spans {
			functions = append(functions, e.spans[i].function)
		}
	}
	for _, face := range []string{"\U0001F600", "\U0001F61F"} {
		assert.Contains(t, bodies, "sold "+face+"\x00hé")
		assert.Contains(t, bodies, "ENTRY "+face)
		assert.Contains(t, functions, "Shop"+face+".buy")
	}
}
