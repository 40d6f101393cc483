// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/componentkit/schema"
)

// AppendLogs appends a copy of a resource with the receiver's scope, and returns the scope's
// empty log records.
func (k *Kit) AppendLogs(to plog.Logs, resource pcommon.Resource) plog.LogRecordSlice {
	of := to.ResourceLogs().AppendEmpty()
	resource.CopyTo(of.Resource())
	of.SetSchemaUrl(schema.URL)
	scope := of.ScopeLogs().AppendEmpty()
	scope.SetSchemaUrl(schema.URL)
	k.SetScope(scope.Scope())
	return scope.LogRecords()
}

// AppendSpans appends a copy of a resource with the receiver's scope, and returns the scope's
// empty spans.
func (k *Kit) AppendSpans(to ptrace.Traces, resource pcommon.Resource) ptrace.SpanSlice {
	of := to.ResourceSpans().AppendEmpty()
	resource.CopyTo(of.Resource())
	of.SetSchemaUrl(schema.URL)
	scope := of.ScopeSpans().AppendEmpty()
	scope.SetSchemaUrl(schema.URL)
	k.SetScope(scope.Scope())
	return scope.Spans()
}

// AppendProfiles appends a copy of a resource with the receiver's scope, and returns the
// scope's empty profiles.
func (k *Kit) AppendProfiles(to pprofile.Profiles, resource pcommon.Resource) pprofile.ProfilesSlice {
	of := to.ResourceProfiles().AppendEmpty()
	resource.CopyTo(of.Resource())
	of.SetSchemaUrl(schema.URL)
	scope := of.ScopeProfiles().AppendEmpty()
	scope.SetSchemaUrl(schema.URL)
	k.SetScope(scope.Scope())
	return scope.Profiles()
}

// Resource returns a resource with the attributes of the configuration.
func (c *Config) Resource() pcommon.Resource {
	resource := pcommon.NewResource()
	_ = resource.Attributes().FromRaw(c.ResourceAttributes) // ValidateCommon has checked them
	return resource
}

// PutNew puts a text attribute, unless the text is empty or the key is set already.
func PutNew(attributes pcommon.Map, key, value string) {
	if _, set := attributes.Get(key); !set && value != "" {
		attributes.PutStr(key, value)
	}
}
