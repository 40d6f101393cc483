// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package setting checks the bounds of settings. Its errors name the field and the allowed values. It has checks for any
// field, and for fields that several components have. It knows no component.
package setting

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Between returns an error if the value of a field is not from least to most.
func Between(field string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d: set it to %d to %d", field, value, least, most)
	}
	return nil
}

// Within returns an error if the time of a field is not from least to most.
func Within(field string, value, least, most time.Duration) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %v: set it to %v to %v", field, value, least, most)
	}
	return nil
}

// Timeout returns an error if a time-out is not from 1 ms to 10 min.
func Timeout(field string, value time.Duration) error {
	return Within(field, value, time.Millisecond, 10*time.Minute)
}

// CollectionInterval returns an error if the interval of metrics is not from 0.1 s to 24 h.
func CollectionInterval(value time.Duration) error {
	return Within("collection_interval", value, 100*time.Millisecond, 24*time.Hour)
}

// ResourceAttributes returns an error if a value of resource_attributes has no type of an attribute.
func ResourceAttributes(values map[string]any) error {
	if err := pcommon.NewMap().FromRaw(values); err != nil {
		return fmt.Errorf("resource_attributes: %w: use strings, numbers, booleans, and lists of them", err)
	}
	return nil
}
