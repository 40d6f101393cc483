// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package api has the values of the HTTP API of the extension agent_control, which the extension
// sends and agentctl reads. [Document] describes the API.
package api

import _ "embed"

// Document describes the API, by OpenAPI 3.0.
//
//go:embed openapi.yaml
var Document []byte
