// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package install tests the result of `make package`: packages are installed in a clean Debian and
// run there like their units, and an image is built and run. `make package-test` runs the tests, as
// root.
package install
