// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package agentcontrol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/internal/agentcontrol"
	"github.com/callbraid/callbraid/internal/agentcontrol/agentcontroltest"
)

func TestEachDirectoryShowsAnAgent(t *testing.T) {
	none := agentcontrol.Of(componenttest.NewNopHost())
	assert.Empty(t, none)
	assert.Zero(t, testing.AllocsPerRun(100, func() { none.Register(nil)() }), "without the extension it costs nothing")

	var one, other agentcontroltest.Directory
	assert.Len(t, agentcontrol.Of(&one), 1)
	end := agentcontrol.Directories{&one, &other}.Register(nil)
	assert.Len(t, one.Agents(), 1)
	assert.Len(t, other.Agents(), 1)
	end()
	end()
	assert.Empty(t, one.Agents())
	assert.Empty(t, other.Agents())
}

func TestIDsAreOfAllWords(t *testing.T) {
	assert.Regexp(t, "^[0-9a-f]{16}$", agentcontrol.NewID("bytefrog", "x"))
	assert.Equal(t, agentcontrol.NewID("bytefrog", "x"), agentcontrol.NewID("bytefrog", "x"))
	assert.NotEqual(t, agentcontrol.NewID("bytefrog", "x"), agentcontrol.NewID("bytefrogx", ""))
}
