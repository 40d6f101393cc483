// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/receiverkit"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

func TestUnknownPropertiesOfAnObjectAreNotInItsRecord(t *testing.T) {
	config := receiverkit.DefaultConfig()
	kit, err := receiverkit.New(receivertest.NewNopSettings(metadata.Type), &config, receiverkit.Names{})
	require.NoError(t, err)
	recorded := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	of := origin.New(&origin.Settings{Resource: pcommon.NewResource}, origin.Identity{}, recorded, 0)
	records := NewObjects(&Settings{Kit: kit}, of)
	records.AppendObject(&rbkit.Event{Object: rbkit.Object{ID: 20}}, recorded)
	records.AppendObject(&rbkit.Event{Object: rbkit.Object{ID: 40, Sized: true, Line: 3, File: []byte("a.rb")}}, recorded)
	keys := func(i int) []string {
		return slices.Sorted(maps.Keys(records.records.At(i).Attributes().AsRaw()))
	}
	assert.Equal(t, []string{AttributeDumpID, attributeObjectID, names.AttributeClass}, keys(0))
	assert.Subset(t, keys(1), []string{attributeObjectSize, attributeLine, attributeFile})
}
