// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package sameorigin keeps requests of other sites, which a browser sends for whoever
// looks at them, away from a server that is for the people and programs of one machine or
// network. It knows no pages.
package sameorigin
