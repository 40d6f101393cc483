// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package eventswitch reads which log records are switched off from the configuration that mdatagen
// generates of the events in a metadata.yaml. It doesn't know the events.
package eventswitch

import "reflect"

// Off is the names of events that are switched off in a generated EventsConfig: a struct whose
// fields have the name of an event as the tag mapstructure, and a field Enabled.
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
