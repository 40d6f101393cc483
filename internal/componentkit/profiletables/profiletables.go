// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiletables begins the tables that all profiles of a message share.
package profiletables

import "go.opentelemetry.io/collector/pdata/pprofile"

// Begin appends the first entry to each table. It is empty, and stands for none (opentelemetry-proto,
// message ProfilesDictionary).
func Begin(tables pprofile.ProfilesDictionary) {
	tables.MappingTable().AppendEmpty()
	tables.LocationTable().AppendEmpty()
	tables.FunctionTable().AppendEmpty()
	tables.LinkTable().AppendEmpty()
	tables.StringTable().Append("")
	tables.AttributeTable().AppendEmpty()
	tables.StackTable().AppendEmpty()
}
