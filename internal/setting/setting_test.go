// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsOutOfItsBoundsIsNamedWithThem(t *testing.T) {
	for _, value := range []int{2, 3, 4} {
		assert.NoError(t, Between("limits.max_agents", value, 2, 4))
		assert.NoError(t, Within("list_interval", time.Duration(value)*time.Second, 2*time.Second, 4*time.Second))
	}
	for _, value := range []int{1, 5} {
		assert.ErrorContains(t, Between("limits.max_agents", value, 2, 4), "limits.max_agents is ")
		assert.ErrorContains(t, Within("list_interval", time.Duration(value)*time.Second, 2*time.Second, 4*time.Second), ": set it to 2s to 4s")
	}
	assert.EqualError(t, Between("limits.max_agents", 5, 2, 4), "limits.max_agents is 5: set it to 2 to 4")
	assert.EqualError(t, Within("list_interval", 0, 2*time.Second, 4*time.Second), "list_interval is 0s: set it to 2s to 4s")
}
