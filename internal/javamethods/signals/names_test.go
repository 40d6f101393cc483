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

// declared returns the events that a receiver declares in its metadata.yaml.
func declared(t *testing.T, receiver string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../receiver/" + receiver + "receiver/metadata.yaml")
	require.NoError(t, err)
	var metadata struct{ Events map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	return slices.Sorted(maps.Keys(metadata.Events))
}

// Greys has no watches, and its recorded calls are spans.
func TestEveryEventOfGreysIsDeclared(t *testing.T) {
	names, _ := newNames("greys")
	names.watch, names.record = names.stack, names.stack
	want := []string{agentcontrol.EventName}
	all := reflect.ValueOf(names)
	for i := range all.NumField() {
		want = append(want, all.Field(i).String())
	}
	slices.Sort(want)
	assert.Equal(t, slices.Compact(want), declared(t, "greys"))
}

// Arthas has no lists of classes.
func TestEveryEventOfArthasIsDeclared(t *testing.T) {
	n, _ := newNames("arthas")
	want := []string{agentcontrol.EventName, n.connected, n.gone, n.refused, n.restarted, n.stack, n.unmatched, n.record, n.watch}
	slices.Sort(want)
	assert.Equal(t, want, declared(t, "arthas"))
}
