// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttnglivereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
)

func TestMetricsOfTwoSessionsOfOneNameAreOfTwoResources(t *testing.T) {
	env := unstartedBed(t).receiver.env
	instance := func(s lttnglive.Session) string {
		return textOf(newFollower(env, s).state().resource.Attributes(), attributeServiceInstanceID)
	}
	one, other := lttnglive.Session{ID: 1, Host: "vm", Name: "shop"}, lttnglive.Session{ID: 2, Host: "vm", Name: "shop"}
	assert.NotEqual(t, instance(one), instance(other))
	assert.Equal(t, instance(one), instance(one), "the same one is known again")
}
