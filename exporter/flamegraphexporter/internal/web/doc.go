// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package web serves call trees: a page of all services, one for each, the pages of
// pprof, and downloads. It knows no collector and no listener: it is a handler.
//
// All pages work without a script, but for pprof's own, and ask for nothing from outside.
// Names come from telemetry and can be anything: they are printable before they get into
// a page, and escaped by its template. A GET changes nothing that stays; what is changed by
// POST is refused where another site's page asks for it, and so is all else that no person
// followed a link to.
//
//	/                                       all services
//	/services/NAME/                         a service
//	/services/NAME/ui/flamegraph            pprof's pages: flamegraph, top, peek
//	/services/NAME/profile.pb.gz            for go tool pprof and others; also
//	                                        profile.folded and profile.speedscope.json
//	/services/NAME/profiles/TYPE/UNIT/...   the same of what profiles tell, and not calls
//	/windows/NUMBER/...                     the same of a window that was collected
//	/traces/ID.json                         a trace, for Perfetto
//	POST /windows                           collects a window
//	POST /reset                             lets trees begin anew
//
// Names in addresses are those of telemetry, byte for byte: see [segment].
package web
