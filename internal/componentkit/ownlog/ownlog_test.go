// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ownlog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// signalCore is the core of a logger that names a signal in every line, as that of the Collector does.
type signalCore struct {
	zapcore.Core
	dropped *[]string
}

func (c signalCore) DropInjectedAttributes(names ...string) zapcore.Core {
	*c.dropped = append(*c.dropped, names...)
	return c.Core
}

func TestLinesOfAComponentOfAllSignalsNameNone(t *testing.T) {
	var dropped []string
	own := OfAllSignals(zap.New(signalCore{zapcore.NewNopCore(), &dropped}))
	assert.Equal(t, []string{"otelcol.signal", "otelcol.signal.output"}, dropped)
	assert.Equal(t, zapcore.NewNopCore(), own.Core())

	other := zap.NewNop()
	assert.Equal(t, other.Core(), OfAllSignals(other).Core())
}
