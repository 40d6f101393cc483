// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package eventswitch reads the disabled events from the configuration that mdatagen generates of a metadata.yaml. It
// does not know the events.
package eventswitch

import "reflect"

// Off returns the names of the disabled events in a generated EventsConfig. Each of its fields has the name of an event
// as the tag mapstructure, and a field Enabled.
func Off(config any) map[string]bool {
	off := map[string]bool{}
	value := reflect.ValueOf(config)
	for i := range value.NumField() {
		if !value.Field(i).FieldByName("Enabled").Bool() {
			off[value.Type().Field(i).Tag.Get("mapstructure")] = true
		}
	}
	return off
}
