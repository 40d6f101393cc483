// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package api is what the HTTP API of the extension agent_control says, as values: what
// the extension sends and agentctl reads. [Document] describes it.
package api

import _ "embed"

// Document describes the API, by OpenAPI 3.0.
//
//go:embed openapi.yaml
var Document []byte
