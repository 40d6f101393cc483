// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser tests pages with Chromium, as a person uses them: their content, the effect of
// clicks, and the browser's requests.
//
// Each browser is a process of its own with a directory that is removed after the test. It can
// resolve no name and reach only this machine, so no request of a page leaves it. It records all
// requests: see [Browser.Requests].
package browser
