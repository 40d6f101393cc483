// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestServersShareTheMetricPoints(t *testing.T) {
	t.Parallel()
	const maxPoints, maxMethods = 50_000, 2000
	for _, c := range []struct {
		servers, methods int
		setting          string
	}{
		{0, 2000, "limits.max_methods"}, {1, 2000, "limits.max_methods"}, {3, 2000, "limits.max_methods"},
		{4, 1785, "limits.max_metric_points"}, {50, 142, "limits.max_metric_points"}, {1_000_000, 1, "limits.max_metric_points"},
	} {
		methods, setting := MethodsOfServer(maxPoints, c.servers, maxMethods)
		assert.Equal(t, c.methods, methods, "%d servers", c.servers)
		assert.Equal(t, c.setting, setting, "%d servers", c.servers)
	}
	assert.Equal(t, pointsOfMethod, reflect.TypeFor[MethodSeries]().NumField(), "points of a method")
}
