// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package functionmetrics

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReadmeHasEachMetricAndAttribute(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	const sum = "sum, cumulative, monotonic"
	for d, kind := range map[definition]string{calls: sum, failures: sum, duration: "exponential histogram, cumulative"} {
		assert.Contains(t, string(readme), fmt.Sprintf("| `%s` | %s | `%s` | %s |\n", d.name, kind, d.unit, d.description))
	}
	for _, attribute := range []string{attributeFunction, attributeErrorType, attributeOverflow} {
		assert.Contains(t, string(readme), "\n| `"+attribute+"` | ")
	}
	assert.Contains(t, string(readme), "`"+otherError+"`")
}
