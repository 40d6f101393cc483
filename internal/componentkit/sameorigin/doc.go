// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package sameorigin protects a server for one machine or network from pages of other sites. A browser sends requests
// for such a page when a person visits it. The package knows no pages.
package sameorigin
