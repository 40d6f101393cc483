// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/process"
)

func TestMetricsOfTwoSessionsWithOneNameHaveTwoResources(t *testing.T) {
	env := newEnvironment(t, nil)
	instance := func(s lttnglive.Session) string {
		return New(env, s).State().Resource.Attributes().AsRaw()[process.AttributeServiceInstanceID].(string)
	}
	one, other := lttnglive.Session{ID: 1, Host: "vm", Name: "shop"}, lttnglive.Session{ID: 2, Host: "vm", Name: "shop"}
	assert.NotEqual(t, instance(one), instance(other))
	assert.Equal(t, instance(one), instance(one), "the same one is known again")
}
