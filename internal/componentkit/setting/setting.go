// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package setting says which settings are out of their bounds, and what to set them to:
// those of any field, and of the fields that several components have. It knows no
// component.
package setting

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Between is an error where the value of a field is not least to most.
func Between(field string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d: set it to %d to %d", field, value, least, most)
	}
	return nil
}

// Within is an error where the time of a field is not least to most.
func Within(field string, value, least, most time.Duration) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %v: set it to %v to %v", field, value, least, most)
	}
	return nil
}

// Timeout is an error where the time of a field is not one that something can be waited
// for: a millisecond to ten minutes.
func Timeout(field string, value time.Duration) error {
	return Within(field, value, time.Millisecond, 10*time.Minute)
}

// CollectionInterval is an error where metrics can't be handed on that often: it is a tenth
// of a second to a day.
func CollectionInterval(value time.Duration) error {
	return Within("collection_interval", value, 100*time.Millisecond, 24*time.Hour)
}

// ResourceAttributes is an error where a value of resource_attributes is none that an
// attribute can have.
func ResourceAttributes(values map[string]any) error {
	if err := pcommon.NewMap().FromRaw(values); err != nil {
		return fmt.Errorf("resource_attributes: %w: use strings, numbers, booleans, and lists of them", err)
	}
	return nil
}
