// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package ctffilereceiver

import (
	"testing"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

func TestAllSignalsShareOneReceiver(t *testing.T) {
	receivertestbed.OneReceiverForAllSignals(t, NewFactory(), func() component.Config {
		config := createDefaultConfig()
		config.Include = []string{t.TempDir()}
		return config
	})
}
