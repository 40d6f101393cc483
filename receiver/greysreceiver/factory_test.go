// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"testing"

	"go.opentelemetry.io/collector/component"

	"github.com/callbraid/callbraid/internal/receiverkit/receivertestbed"
)

func TestAllSignalsShareOneReceiver(t *testing.T) {
	receivertestbed.OneReceiverForAllSignals(t, NewFactory(), func() component.Config {
		config := createDefaultConfig()
		config.Servers, config.Monitors = []ServerConfig{{Endpoint: "localhost:1"}}, []MonitorConfig{monitor("demo.*", "*")}
		return config
	})
}
