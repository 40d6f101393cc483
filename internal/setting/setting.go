// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package setting says which settings are out of their bounds, and what to set them to.
// It knows no component.
package setting

import (
	"fmt"
	"time"
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
