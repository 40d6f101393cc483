// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package webpage has the shared parts of all pages that components serve: the frame, the style sheet, and the script that
// keeps a page current. It knows no content.
//
// # Current pages
//
// A page whose <main> has the attribute data-live is kept current by live.js. While a person can see the page, the script
// requests it again after two seconds, and after up to five while nothing changes. It sends the tag of the last response, and
// [Write] answers an unchanged page without its content. A page in the background sends no request. The script changes only
// those parts that differ, so texts in forms, the focus, and opened details stay. It finds an element that moved by its id.
//
// A page works without the script: then it shows the state of its request.
package webpage
