// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package schema has the version of the semantic conventions by which receivers name attributes.
// It knows no signals: a receiver sets the URL for the resource and for the scope of spans, log
// records and profiles. Metrics have it for the resource, as mdatagen generates them: an exporter
// to Prometheus makes a label of a scope's.
package schema

import semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

// URL is the schema URL of that version, which is the sem_conv_version of each metadata.yaml.
const URL = semconv.SchemaURL
