// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package stackpairingprocessor

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/callbraid/callbraid/processor/stackpairingprocessor/internal/metadata"
)

func TestTheEngineGetsEachOwnMetricUnderItsName(t *testing.T) {
	builder, err := metadata.NewTelemetryBuilder(componenttest.NewTelemetry().NewTelemetrySettings())
	require.NoError(t, err)
	of, got := reflect.ValueOf(builder).Elem(), reflect.ValueOf(instruments(builder))
	described := 0
	for i := range of.NumField() {
		name, found := strings.CutPrefix(of.Type().Field(i).Name, "ProcessorStackPairing")
		if !found {
			continue
		}
		described++
		require.True(t, got.FieldByName(name).IsValid(), name)
		assert.Same(t, of.Field(i).Interface(), got.FieldByName(name).Interface(), name)
	}
	assert.Equal(t, got.NumField(), described)
}
