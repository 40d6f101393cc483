// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// call sends a command without a result to the browser.
func call[P any](t testing.TB, b *Browser, command cdp.Command[P, cdp.Empty], params P) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		t.Fatalf("the browser: %v", err)
	}
}

// Tap taps on a place of the window with a finger.
func (b *Browser) Tap(t testing.TB, x, y float64) {
	t.Helper()
	call(t, b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	call(t, b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: x, Y: y}}})
	call(t, b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
	call(t, b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{})
}

// Prefer sets the colours that the person prefers: "dark" or "light".
func (b *Browser) Prefer(t testing.TB, colours string) {
	t.Helper()
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
	})
}

// Press presses keys one after the other. A page that handles a key itself gets no text from it, as from a keyboard.
func (b *Browser) Press(t testing.TB, keys string) {
	t.Helper()
	b.Do(t, chromedp.KeyEvent(keys, func(p *input.DispatchKeyEventParams) {
		if p.Type == input.DispatchKeyEventTypeKeyDown {
			p.Type = input.DispatchKeyEventTypeRawKeyDown // the browser sends its text on, also if the page handles a KeyDown
		}
	}))
}
