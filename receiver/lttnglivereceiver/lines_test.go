// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/session"
	"github.com/callbraid/callbraid/internal/lttng/symbols"
)

func TestAnObjectWithoutFileNamesTheSettingAndTheRemedy(t *testing.T) {
	b := unstartedBed(t)
	session.LogNoNames(b.receiver.kit.Logger, "/opt/shop", fmt.Errorf("%w below /", symbols.ErrNoFile))
	session.LogNoNames(b.receiver.kit.Logger, "/opt/other", errors.New("another error"))
	said := b.said.FilterMessageSnippet("Functions of an object have no names").All()
	require.Len(t, said, 2)
	assert.Contains(t, said[0].Message, "no directory of symbol_paths has its file. Add the directory")
	assert.Equal(t, "no file found below /", said[0].ContextMap()["error"])
	assert.NotContains(t, said[1].Message, "symbol_paths")
}
