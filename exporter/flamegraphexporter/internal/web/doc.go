// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Package web serves call trees: a page of all services, a page for each, flame graphs, lists of pprof,
// and downloads. It knows no collector and no listener: it is a handler.
//
// All pages except flame graphs, pprof's and speedscope work without a script, and load nothing from other servers. The script
// of package webpage keeps the page of all services current, and measures slow functions. Names are
// from telemetry and can be any text: they are printable before they get into a page, and its
// template escapes them. A GET changes nothing permanent. A POST from another site's page is
// refused, and so is every other request of another site that is no followed link.
//
//	/                                       all services
//	/services/NAME/                         a service
//	/services/NAME/ui/flamegraph            the flame graph; flamegraph.json has its data
//	/services/NAME/ui/top                   pprof's pages: top, peek
//	/services/NAME/profile.pb.gz            for go tool pprof and others; also
//	                                        profile.folded and profile.speedscope.json
//	/services/NAME/profiles/TYPE/UNIT/...   the same for profiles instead of calls
//	/windows/NUMBER/...                     the same for a collected window
//	/traces/ID.speedscope.json              a trace of kept spans
//	/files/NAME                             a trace file of an exporter perfetto
//	/services/NAME/at/2026-11-27T10Z/...    the same for a stored hour, or a day such as 2026-11-27Z; also below profiles
//	/compare?before=TREE&after=TREE         two of these trees compared, by the addresses of their pages
//	/d3/FILE, /flamegraph.js                the scripts of flame graphs
//	/speedscope/#profileURL=FILE            speedscope with one of these files
//	POST /services/NAME/now                 measures what is slow now
//	POST /windows                           collects a window
//	POST /reset                             resets trees
//
// Names in addresses are those of telemetry, byte for byte: see [segment].
package web
