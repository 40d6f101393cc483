// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package webpage

import (
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPageHasTheFrameAndItsFiles(t *testing.T) {
	pages := Templates(template.FuncMap{"loud": strings.ToUpper}, fstest.MapFS{
		"pages/one.html": {Data: []byte(`{{template "head" .}}<main data-live>{{loud .Text}}</main>{{template "live" .}}{{template "foot"}}`)},
	}, "pages/*.html")
	var b strings.Builder
	require.NoError(t, pages.ExecuteTemplate(&b, "one.html", map[string]string{"Title": "<One>", "Root": "../", "Text": "<b>"}))
	for _, want := range []string{"<title>&lt;One&gt; – Callbraid</title>", `href="../style.css"`, `src="../live.js"`, "<main data-live>&lt;B&gt;</main>", "</html>"} {
		assert.Contains(t, b.String(), want)
	}
	for path, contentType := range map[string]string{"/style.css": "text/css", "/live.js": "text/javascript"} {
		w := httptest.NewRecorder()
		Routes[path](w, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, http.StatusOK, w.Code, path)
		assert.Contains(t, w.Header().Get("Content-Type"), contentType, path)
		assert.NotEmpty(t, w.Body.String(), path)
	}
	assert.Len(t, Routes, 2)
}

func TestAPageWithTheTagOfTheRequestIsNotSentAgain(t *testing.T) {
	request := func(tag string, status int, html string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("If-None-Match", tag)
		Write(w, r, status, []byte(html))
		return w
	}
	first := request("", http.StatusOK, "one")
	assert.Equal(t, "one", first.Body.String())
	assert.Contains(t, first.Header().Get("Content-Security-Policy"), "script-src 'self'; connect-src 'self'")
	tag := first.Header().Get("ETag")

	same := request(tag, http.StatusOK, "one")
	assert.Equal(t, http.StatusNotModified, same.Code)
	assert.Empty(t, same.Body.String())
	assert.Equal(t, tag, same.Header().Get("ETag"))

	assert.Equal(t, "two", request(tag, http.StatusOK, "two").Body.String())
	problem := request(tag, http.StatusNotFound, "one")
	assert.Equal(t, http.StatusNotFound, problem.Code, "an error is never the same page")
	assert.Equal(t, "one", problem.Body.String())
}
