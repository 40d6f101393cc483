// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/test/kit/prometheus"
)

// Prometheus' own tool reads the alert rules. It tests them with played series, the first increment of a counter included.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	tool := prometheus.Tool(t)
	for name, arguments := range map[string][]string{
		"they are valid":                         {"check", "rules", "../packaging/prometheus/alerts.yaml"},
		"they fire, and are silent, as expected": {"test", "rules", "testdata/alerts.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := exec.CommandContext(t.Context(), tool, arguments...).CombinedOutput()
			assert.NoError(t, err, "%s", output)
		})
	}
}
