// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/callbraid/callbraid/internal/testkit"
)

// patience is the time of a browser for a test's request. It is long because it costs only a
// failing test.
const patience = 4 * time.Minute

// The size of the window.
const (
	Width  = 1400
	Height = 900
)

// Browser is a window of a Chromium.
type Browser struct {
	ctx context.Context

	mu        sync.Mutex
	requests  []string
	errors    []string
	questions []string
	accepts   bool
}

// Start starts a browser, which ends with the test. Where there is none, the test is
// skipped, or fails if CALLBRAID_REQUIRE_PEERS is set.
func Start(t testing.TB) *Browser {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(Path(t)),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(Width, Height),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("no-proxy-server", true),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to have one as root
	}
	b := &Browser{}
	process, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	b.ctx, end = chromedp.NewContext(process, chromedp.WithListener(b.notice))
	t.Cleanup(end)
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatalf("the browser: %v", err)
	}
	return b
}

// Path is where the browser is. Where there is none, the test is skipped, or fails if
// CALLBRAID_REQUIRE_PEERS is set.
func Path(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	const remedy = "no chromium in PATH: install it (Debian: apt-get install chromium)"
	if os.Getenv("CALLBRAID_REQUIRE_PEERS") != "" {
		t.Fatal(remedy)
	}
	t.Skip(remedy)
	return ""
}

// notice records the browser's requests, and errors in pages.
func (b *Browser) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.errors = append(b.errors, text)
	case *page.EventJavascriptDialogOpening:
		b.questions = append(b.questions, e.Message)
		answer := page.HandleJavaScriptDialogParams{Accept: b.accepts}
		go func() { // the browser sends no further event before this one returns
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, answer) // it fails when the browser ends
		}()
	}
}

// Accept lets the browser accept the questions of pages from now on, or decline them, as it does at first.
func (b *Browser) Accept(accepts bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accepts = accepts
}

// Questions are the questions that pages asked.
func (b *Browser) Questions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.questions)
}

// Requests are the addresses of all that was asked for.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// Errors are the uncaught errors of the pages' scripts.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.errors)
}

// Do has the browser do something, and fails the test if it cannot.
func (b *Browser) Do(t testing.TB, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("the browser: %v", err)
	}
}

// Get returns the browser's result, or fails the test.
func Get[T any](t testing.TB, b *Browser, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatalf("the browser: %v", err)
	}
	return result
}

// Open loads a page, of which the status must not be that of an error.
func (b *Browser) Open(t testing.TB, url string) {
	t.Helper()
	response := Get(t, b, chromedp.NavigateResponse(url))
	if response != nil && response.Status >= http.StatusBadRequest { // nil for another part of the same page
		t.Fatalf("the browser: expected a page at %s, got status %d", url, response.Status)
	}
}

// Leave does an action that leads to another page, and waits until that page is loaded.
func (b *Browser) Leave(t testing.TB, action chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, action); err != nil {
		t.Fatalf("the browser: %v", err)
	}
}

// The size of a phone's window.
const (
	PhoneWidth  = 390
	PhoneHeight = 844
)

// Phone makes the window as small as a phone's, and Desktop as large as it was.
func (b *Browser) Phone(t testing.TB)   { b.resize(t, PhoneWidth, PhoneHeight) }
func (b *Browser) Desktop(t testing.TB) { b.resize(t, Width, Height) }

func (b *Browser) resize(t testing.TB, width, height int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width == PhoneWidth,
	}); err != nil {
		t.Fatalf("the browser: %v", err)
	}
}

// WithoutScripts lets pages run no scripts from now on.
func (b *Browser) WithoutScripts(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatalf("the browser: %v", err)
	}
}

// DownloadTo lets downloads be written into the directory.
func (b *Browser) DownloadTo(t testing.TB, directory string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: directory,
	}); err != nil {
		t.Fatalf("the browser: %v", err)
	}
}

// screenshots is the environment variable with the directory of pictures.
const screenshots = "CALLBRAID_SCREENSHOTS"

// Downloaded waits for a download to a directory, and returns its path. The pattern is that of filepath.Match. Chromium
// reserves the name with an empty file, and renames the complete one to it.
func Downloaded(t testing.TB, directory, pattern string) (path string) {
	t.Helper()
	testkit.Eventually(t, pattern+" is downloaded", func() (bool, string) {
		found, err := filepath.Glob(filepath.Join(directory, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if path = strings.Join(found, " "); len(found) != 1 {
			return false, path
		}
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0, path + " is empty"
	})
	return path
}

// Screenshot saves a picture of the window in the directory of the environment variable
// CALLBRAID_SCREENSHOTS, if it is set.
func (b *Browser) Screenshot(t testing.TB, name string) {
	t.Helper()
	if os.Getenv(screenshots) == "" {
		return
	}
	Save(t, name, b.capture(t))
}

// capture returns a picture of the window, compressed fast and not well.
func (b *Browser) capture(t testing.TB) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	fast := true
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{FromSurface: &fast, OptimizeForSpeed: &fast})
	if err != nil {
		t.Fatalf("the browser: %v", err)
	}
	return picture.Data
}

// Save saves a picture in that directory.
func Save(t testing.TB, name string, picture []byte) {
	t.Helper()
	directory := os.Getenv(screenshots)
	if directory == "" {
		return
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
