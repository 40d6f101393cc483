// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/callbraid/callbraid/internal/agentcontrol"
)

// The names of log records are those that the receiver for Greys declares in its metadata.yaml.
func TestEveryEventIsDeclared(t *testing.T) {
	names, _ := newNames("greys")
	want := []string{agentcontrol.EventName}
	all := reflect.ValueOf(names)
	for i := range all.NumField() {
		want = append(want, all.Field(i).String())
	}
	text, err := os.ReadFile("../../../receiver/greysreceiver/metadata.yaml")
	require.NoError(t, err)
	var metadata struct{ Events map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	slices.Sort(want)
	assert.Equal(t, want, slices.Sorted(maps.Keys(metadata.Events)))
}
