// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/callbraid/callbraid/internal/call/calltree"
)

// quotedPrefix is the JSON string that a text begins with, and its length in the text; 0:
// it begins with none.
func quotedPrefix(text string) (string, int) {
	decoder := json.NewDecoder(strings.NewReader(text))
	token, err := decoder.Token()
	if err != nil {
		return "", 0
	}
	s, ok := token.(string)
	if !ok {
		return "", 0
	}
	return s, int(decoder.InputOffset())
}

// post sends a form.
func post(h http.Handler, target string, form url.Values, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestUnknownAddressesAndMethodsAreRefused(t *testing.T) {
	h := serve(playing("shop", "f"))
	for target, want := range map[string]int{
		"/nothing":                                                 http.StatusNotFound,
		"/services/nobody/":                                        http.StatusNotFound,
		"/services/nobody/ui/flamegraph":                           http.StatusNotFound,
		"/services/nobody/profile.pb.gz":                           http.StatusNotFound,
		"/services/shop/profiles/a/b/ui/top":                       http.StatusNotFound,
		"/services/shop/ui/graph":                                  http.StatusNotFound,
		"/services/shop/ui/source?f=main":                          http.StatusNotFound,
		"/services/shop/ui/disasm?f=main":                          http.StatusNotFound,
		"/services/shop/ui/saveconfig?config=a":                    http.StatusNotFound,
		"/services/shop/ui/deleteconfig":                           http.StatusNotFound,
		"/services/shop/ui/..%2fflamegraph":                        http.StatusNotFound,
		"/windows/1/":                                              http.StatusNotFound,
		"/windows/0/":                                              http.StatusNotFound,
		"/windows/x/profile.pb.gz":                                 http.StatusNotFound,
		"/windows/99999999999999999999/":                           http.StatusNotFound,
		"/traces/02000000000000000000000000000000.speedscope.json": http.StatusNotFound,
		"/traces/01000000000000000000000000000000.json":            http.StatusBadRequest,
		"/traces/..%2f..%2fetc%2fpasswd":                           http.StatusBadRequest,
		"/traces/0100000000000000000000000000000.speedscope.json":  http.StatusBadRequest,
		"/traces/0x000000000000000000000000000000.speedscope.json": http.StatusBadRequest,
		"/pages/tree.html":                                         http.StatusNotFound,
		"/style.css":                                               http.StatusOK,
		"/reset":                                                   http.StatusMethodNotAllowed,
		"/windows":                                                 http.StatusMethodNotAllowed,
		"/?" + strings.Repeat("a", maxQuery+1):                     http.StatusRequestURITooLong,
		"/services/shop/profile.pb.gz?seconds=0":                   http.StatusBadRequest,
		"/services/shop/profile.pb.gz?seconds=601":                 http.StatusBadRequest,
		"/services/shop/profile.pb.gz?seconds=x":                   http.StatusBadRequest,
		"/services/shop/ui/flamegraph?f=(":                         http.StatusBadRequest,
		"/services/shop/ui/top?i=(":                                http.StatusBadRequest,
		"/services/shop/ui/top?h=(":                                http.StatusBadRequest,
		"/services/shop/ui/flamegraph?si=nothing":                  http.StatusBadRequest,
		"/services/shop/ui/top?g=nothing":                          http.StatusBadRequest,
		"/services/shop/ui/flamegraph.json?width=x":                http.StatusBadRequest,
		"/services/shop/ui/flamegraph.json?width=-1":               http.StatusBadRequest,
		"/services/shop/ui/flamegraph?prunefrom=a":                 http.StatusBadRequest,
		"/services/shop/ui/flamegraph?at=1":                        http.StatusNotFound,
		"/services/shop/ui/flamegraph?at=%3Cb%3E":                  http.StatusNotFound,
		"/services/nobody/ui/flamegraph.json":                      http.StatusNotFound,
		"/flamegraph.js":                                           http.StatusOK,
		"/flamegraph.css":                                          http.StatusOK,
		"/d3/":                                                     http.StatusNotFound,
	} {
		assert.Equal(t, want, get(t, h, target).Code, target)
	}
}

func TestErrorsAreTextWithoutMarkup(t *testing.T) {
	h := serve(playing("shop", "f"))
	for _, target := range []string{
		"/services/shop/ui/flamegraph?f=" + url.QueryEscape("(<script>\u202e"),
		"/services/shop/ui/flamegraph?si=" + url.QueryEscape("<script>\x00"),
		"/services/shop/ui/top?g=" + url.QueryEscape("<script>\n"),
		"/traces/%3Cscript%3E.speedscope.json",
	} {
		w := get(t, h, target)
		assert.Equal(t, http.StatusBadRequest, w.Code, target)
		assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"), target)
		assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), target)
		assert.NotContains(t, w.Body.String(), "\u202e", target)
		assert.NotContains(t, w.Body.String(), "\x00", target)
	}
}

func TestAnswersHaveHeadersForBrowsers(t *testing.T) {
	h := serve(playing("shop", "f"))
	for _, target := range []string{"/", "/style.css", "/nothing", "/services/shop/", "/services/shop/ui/top", "/services/shop/ui/flamegraph", "/services/shop/ui/flamegraph.json", "/services/shop/profile.pb.gz"} {
		header := get(t, h, target).Header()
		for name, want := range map[string]string{
			"Cache-Control":                "no-store",
			"Referrer-Policy":              "same-origin",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
		} {
			assert.Equal(t, want, header.Get(name), "%s: %s", target, name)
		}
	}
}

func TestOtherSitesChangeNothing(t *testing.T) {
	p := playing("shop", "f")
	h := serve(p)
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"https://attacker.example"}},
		{"Origin": {"null"}},
	} {
		assert.Equal(t, http.StatusForbidden, post(h, "/reset", nil, header).Code, header)
		assert.Equal(t, http.StatusForbidden, post(h, "/windows", url.Values{"service": {"shop"}, "seconds": {"5"}}, header).Code, header)
	}
	assert.Empty(t, p.resets)
	assert.Empty(t, h.windows.kept)
}

func TestReset(t *testing.T) {
	p := playing("a/b", "f")
	h := serve(p)
	own := http.Header{"Sec-Fetch-Site": {"same-origin"}}
	w := post(h, "/reset", url.Values{"service": {segment("a/b")}}, own)
	assert.Equal(t, http.StatusSeeOther, w.Code)
	assert.Equal(t, ".", w.Header().Get("Location"))
	assert.Equal(t, http.StatusSeeOther, post(h, "/reset", nil, nil).Code)
	assert.Equal(t, http.StatusNotFound, post(h, "/reset", url.Values{"service": {"nobody"}}, nil).Code)
	assert.Equal(t, http.StatusBadRequest, post(h, "/reset", url.Values{"service": {"%"}}, nil).Code)
	assert.Equal(t, []string{"a/b", "all of them", "nobody"}, p.resets)
}

func TestFormsAreBounded(t *testing.T) {
	h := serve(playing("shop", "f"))
	assert.Equal(t, http.StatusBadRequest, post(h, "/reset", url.Values{"service": {strings.Repeat("a", maxForm+1)}}, nil).Code)
}

func TestACollectedWindowHasAPageThatCannotBeReset(t *testing.T) {
	h := serve(playing("shop", "f"))
	w := post(h, "/windows", url.Values{"service": {"shop"}, "seconds": {"30"}}, nil)
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	assert.Equal(t, "windows/1/", w.Header().Get("Location"))
	assert.Contains(t, textOf(t, page(t, h, "/windows/1/")), "A window of 30s")
	assert.Contains(t, page(t, h, "/services/shop/"), `windows/1/`)
	assert.NotContains(t, page(t, h, "/windows/1/"), `action=`, "a window cannot be reset")
	assert.Equal(t, http.StatusBadRequest, get(t, h, "/windows/1/profile.pb.gz?seconds=5").Code)
}

func TestWindowsAreBounded(t *testing.T) {
	p := playing("shop", "f")
	h := serve(p)
	collect := func() {
		require.Equal(t, http.StatusSeeOther, post(h, "/windows", url.Values{"service": {"shop"}, "seconds": {"5"}}, nil).Code)
	}
	for range keptWindows {
		collect()
	}
	assert.Zero(t, h.DroppedWindows())
	collect()
	assert.Len(t, h.windows.kept, keptWindows)
	assert.EqualValues(t, 1, h.DroppedWindows())
	assert.Equal(t, http.StatusNotFound, get(t, h, "/windows/1/").Code)
	page(t, h, "/windows/2/")

	p.trees[treeKey{"shop", calltree.Calls}] = calltree.Snapshot{Service: "shop", Nodes: make([]calltree.Node, keptWindowNodes+1)}
	collect()
	assert.Len(t, h.windows.kept, 1, "a large one is the only one")
	assert.EqualValues(t, 1+keptWindows, h.DroppedWindows())
}

func TestInvalidWindowsAreRefused(t *testing.T) {
	p := playing("shop", "f")
	h := serve(p)
	for _, test := range []struct {
		form url.Values
		want int
	}{
		{url.Values{"service": {"nobody"}, "seconds": {"5"}}, http.StatusNotFound},
		{url.Values{"service": {"shop"}}, http.StatusBadRequest},
		{url.Values{"service": {"shop"}, "seconds": {"-1"}}, http.StatusBadRequest},
		{url.Values{"service": {"%"}, "seconds": {"5"}}, http.StatusBadRequest},
		{url.Values{"service": {"shop"}, "type": {"%"}, "seconds": {"5"}}, http.StatusBadRequest},
		{url.Values{"service": {"shop"}, "unit": {"%"}, "seconds": {"5"}}, http.StatusBadRequest},
	} {
		assert.Equal(t, test.want, post(h, "/windows", test.form, nil).Code, test.form)
	}
	p.collect = func(context.Context, string, calltree.Kind, time.Duration) (calltree.Snapshot, error) {
		return calltree.Snapshot{}, calltree.ErrBusy
	}
	w := get(t, h, "/services/shop/profile.pb.gz?seconds=5")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.NotEmpty(t, w.Header().Get("Retry-After"))
}

func TestACancelledRequestEndsItsWindow(t *testing.T) {
	p := playing("shop", "f")
	p.collect = func(ctx context.Context, _ string, _ calltree.Kind, _ time.Duration) (calltree.Snapshot, error) {
		<-ctx.Done()
		return calltree.Snapshot{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	serve(p).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/services/shop/profile.pb.gz?seconds=600", nil))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
}

func TestResponsesThatHoldATreeWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(playing("shop", "f"))
		pages := []string{"/services/shop/", "/services/shop/ui/top"}
		sent := []string{"/services/shop/profile.folded", "/traces/01000000000000000000000000000000.speedscope.json"}
		for _, test := range []struct {
			turns   turns
			held    []string
			getting []string
		}{{h.pages, pages, sent}, {h.downloads, sent, pages}} {
			for range cap(test.turns) {
				test.turns <- struct{}{}
			}
			for _, target := range test.held {
				w := get(t, h, target)
				assert.Equal(t, http.StatusServiceUnavailable, w.Code, target)
				assert.NotEmpty(t, w.Header().Get("Retry-After"), target)
			}
			for _, target := range test.getting {
				page(t, h, target)
			}
			for range cap(test.turns) {
				<-test.turns
			}
			for _, target := range test.held {
				page(t, h, target)
			}
			assert.Empty(t, test.turns, "every turn has ended")
		}
	})
}

// A request for seconds holds no copy of a tree while it waits for its turn: the copy is made in
// the turn.
func TestWindowsWaitForTheirTurnBeforeTheyAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := playing("shop", "f")
		h := serve(p)
		collect, copied := p.collect, 0
		for _, test := range []struct {
			turns turns
			ask   func() int
			want  int
		}{
			{h.downloads, func() int { return get(t, h, "/services/shop/profile.pb.gz?seconds=5").Code }, http.StatusOK},
			{h.pages, func() int { return post(h, "/windows", url.Values{"service": {"shop"}, "seconds": {"5"}}, nil).Code }, http.StatusSeeOther},
		} {
			p.collect = func(ctx context.Context, service string, kind calltree.Kind, d time.Duration) (calltree.Snapshot, error) {
				copied++
				assert.Len(t, test.turns, 1, "the turn is in use")
				return collect(ctx, service, kind, d)
			}
			for range cap(test.turns) {
				test.turns <- struct{}{}
			}
			copied = 0
			assert.Equal(t, http.StatusServiceUnavailable, test.ask())
			assert.Zero(t, copied)
			for range cap(test.turns) {
				<-test.turns
			}
			assert.Equal(t, test.want, test.ask())
			assert.Equal(t, 1, copied)
			assert.Empty(t, test.turns, "the turn has ended")
		}
	})
}

// dated is a connection that remembers when it ends.
type dated struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (d *dated) SetWriteDeadline(deadline time.Time) error {
	d.deadline = deadline
	return nil
}

// A form can request longer windows than WriteTimeout.
func TestAWindowOfAFormCanBeLongerThanTheWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length, timeout = 5 * time.Minute, 30 * time.Second
		p := playing("shop", "f")
		collect := p.collect
		p.collect = func(ctx context.Context, service string, kind calltree.Kind, d time.Duration) (calltree.Snapshot, error) {
			time.Sleep(d)
			return collect(ctx, service, kind, d)
		}
		h := New(p, Options{Logger: zap.NewNop(), WriteTimeout: timeout, MaxKeptWindows: 1, MaxKeptWindowNodes: 1})
		r := httptest.NewRequest(http.MethodPost, "/windows", strings.NewReader("service=shop&seconds=300"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w, begin := &dated{ResponseRecorder: httptest.NewRecorder()}, time.Now()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
		assert.Equal(t, begin.Add(length), time.Now())
		assert.Equal(t, begin.Add(length+timeout), w.deadline)
	})
}

// unread is a connection without a reader.
type unread struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (u *unread) SetWriteDeadline(deadline time.Time) error {
	u.deadline = deadline
	return nil
}

func (u *unread) Write([]byte) (int, error) {
	time.Sleep(time.Until(u.deadline))
	return 0, os.ErrDeadlineExceeded
}

func TestASlowReaderLosesItsTurn(t *testing.T) {
	for _, target := range []string{"/services/shop/profile.folded", "/services/shop/profile.pb.gz", "/traces/01000000000000000000000000000000.speedscope.json"} {
		for _, timeout := range []time.Duration{0, time.Second, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				h := New(playing("shop", "f"), Options{Logger: zap.NewNop(), WriteTimeout: timeout})
				for range mostDownloads {
					go h.ServeHTTP(&unread{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, target, nil))
				}
				synctest.Wait()
				assert.Len(t, h.downloads, mostDownloads, "they have their turns")
				page(t, h, target)
			})
		}
	}
}

// slow is a connection from which a piece is read now and then.
type slow struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (s *slow) SetWriteDeadline(deadline time.Time) error {
	s.deadline = deadline
	return nil
}

func (s *slow) Write(b []byte) (int, error) {
	time.Sleep(min(time.Until(s.deadline), 4*time.Second))
	if !time.Now().Before(s.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return s.ResponseRecorder.Write(b)
}

func TestADownloadIsSentInPiecesAndEndsWithTheServersTime(t *testing.T) {
	name := strings.Repeat("x", 3*pieceBytes)
	for timeout, want := range map[time.Duration]bool{0: true, time.Hour: true, 10 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			h := New(playing("shop", name), Options{Logger: zap.NewNop(), WriteTimeout: timeout})
			w := &slow{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/services/shop/profile.folded", nil))
			assert.Equal(t, want, strings.HasSuffix(w.Body.String(), "50000\n"), timeout)
			assert.Empty(t, h.downloads)
		})
	}
}

// TestRequestsOfOtherSitesUseNoTurns has a page of another site that has images of ours.
func TestRequestsOfOtherSitesUseNoTurns(t *testing.T) {
	p := playing("shop", "f")
	collected := 0
	p.collect = func(context.Context, string, calltree.Kind, time.Duration) (calltree.Snapshot, error) {
		collected++
		return p.trees[treeKey{"shop", calltree.Calls}], nil
	}
	h := serve(p)
	for _, test := range []struct {
		site, mode, dest, user string
		page, ofSeconds        int
	}{
		{"cross-site", "no-cors", "image", "", http.StatusForbidden, http.StatusForbidden},
		{"same-site", "no-cors", "image", "", http.StatusForbidden, http.StatusForbidden},
		{"cross-site", "cors", "empty", "", http.StatusForbidden, http.StatusForbidden},
		{"same-origin", "cors", "empty", "", http.StatusOK, http.StatusForbidden}, // speedscope's script
		{"cross-site", "navigate", "iframe", "", http.StatusForbidden, http.StatusForbidden},
		{"cross-site", "navigate", "iframe", "?1", http.StatusForbidden, http.StatusForbidden},
		{"cross-site", "navigate", "document", "", http.StatusForbidden, http.StatusForbidden},
		{"cross-site", "navigate", "document", "?1", http.StatusOK, http.StatusForbidden},
		{"same-origin", "no-cors", "image", "", http.StatusOK, http.StatusOK},
		{"same-origin", "navigate", "document", "", http.StatusOK, http.StatusOK},
		{"none", "navigate", "document", "?1", http.StatusOK, http.StatusOK},
		{"", "", "", "", http.StatusOK, http.StatusOK},
	} {
		collected = 0
		for target, want := range map[string]int{
			"/": test.page, "/services/shop/ui/top?f=f": test.page, "/services/shop/profile.pb.gz": test.page,
			"/services/shop/profile.pb.gz?seconds=600": test.ofSeconds,
		} {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Header.Set("Sec-Fetch-Site", test.site)
			r.Header.Set("Sec-Fetch-Mode", test.mode)
			r.Header.Set("Sec-Fetch-Dest", test.dest)
			r.Header.Set("Sec-Fetch-User", test.user)
			w := httptest.NewRecorder()
			h.ServeHTTP(connection{w}, r)
			assert.Equal(t, want, w.Code, "%v %s", test, target)
		}
		assert.Equal(t, test.ofSeconds == http.StatusOK, collected == 1, test)
	}
}

func TestInternalErrorsAreLogged(t *testing.T) {
	p := playing("shop", "f")
	p.collect = func(context.Context, string, calltree.Kind, time.Duration) (calltree.Snapshot, error) {
		return calltree.Snapshot{}, errors.New("of our own making")
	}
	core, logged := observer.New(zap.ErrorLevel)
	h := New(p, Options{Logger: zap.New(core)})
	w := get(t, h, "/services/shop/profile.pb.gz?seconds=5")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.NotContains(t, w.Body.String(), "making")
	assert.Equal(t, 1, logged.Len())
}

func TestDownloads(t *testing.T) {
	h := serve(playing("shop", "Cart.add"))
	for _, base := range []string{"/services/shop/", "/services/shop/profiles/Cart.add/Cart.adds/"} {
		w := get(t, h, base+"profile.pb.gz")
		p, err := profile.Parse(bytes.NewReader(w.Body.Bytes()))
		require.NoError(t, err)
		assert.Len(t, p.Sample, 5)
		assert.Equal(t, "application/octet-stream", w.Header().Get("Content-Type"))
		assert.Equal(t, `attachment; filename="profile.pb.gz"`, w.Header().Get("Content-Disposition"))

		assert.Contains(t, page(t, h, base+"profile.folded"), "Main.main;Cart.add;Price.of 200000\n")
		assert.True(t, json.Valid([]byte(page(t, h, base+"profile.speedscope.json"))))
	}
	trace := get(t, h, "/traces/01000000000000000000000000000000.speedscope.json")
	assert.True(t, json.Valid(trace.Body.Bytes()))
	assert.Equal(t, `attachment; filename="trace-01000000000000000000000000000000.speedscope.json"`, trace.Header().Get("Content-Disposition"))
}

func TestADownloadOfSecondsIsAWindow(t *testing.T) {
	p, err := profile.Parse(strings.NewReader(page(t, serve(playing("shop", "f")), "/services/shop/profile.pb.gz?seconds=25")))
	require.NoError(t, err)
	assert.Equal(t, 25*time.Second, time.Duration(p.DurationNanos))
}
