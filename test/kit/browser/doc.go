// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser looks at pages with Chromium, as a person does: what stands there, what
// happens where it is clicked, and what the browser asks for.
//
// Each browser is a process of its own with a directory that goes with the test. It can
// resolve no name and reach nothing but this machine, so nothing that a page asks for
// leaves it; whatever it asks for is remembered: see [Browser.Requests].
package browser
