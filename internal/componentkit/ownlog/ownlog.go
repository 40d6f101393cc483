// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownlog has the logger of a component that several signals share. It decides nothing about lines.
package ownlog

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// OfAllSignals returns a logger without the signals that the Collector adds to each line. A component of several signals
// has the logger of the first one.
func OfAllSignals(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		if c, ok := core.(interface {
			DropInjectedAttributes(names ...string) zapcore.Core
		}); ok {
			return c.DropInjectedAttributes("otelcol.signal", "otelcol.signal.output")
		}
		return core
	}))
}
