// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pictureTimeout bounds the time of a browser for the picture. If a browser hangs, another start takes the picture.
const (
	pictureTimeout = 40 * time.Second
	browserStarts  = 3
)

// browsers are the names of Chromium's programs.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// takePicture takes a picture of the page of the first service. Without a browser it prints how to install one.
func takePicture(ctx context.Context, o Options) error {
	browser := ""
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		fmt.Fprintln(o.Status, "no picture: Chromium is not in PATH (Debian: apt-get install chromium)")
		return nil
	}
	if err := photographFirst(ctx, browser, o); err != nil {
		return fmt.Errorf("no picture of the page: %w", err)
	}
	fmt.Fprintf(o.Out, "A picture of the page is in %s\n", o.Screenshot)
	return nil
}

// photographFirst takes a picture of the page of the first service.
func photographFirst(ctx context.Context, browser string, o Options) error {
	address, err := serviceAddress(ctx, o.Pages)
	if err != nil {
		return err
	}
	file, err := filepath.Abs(o.Screenshot)
	if err != nil {
		return err
	}
	return photograph(ctx, browser, address, file, pictureTimeout)
}

// photograph lets the browser write a picture of the page into the file. A browser that has not ended after the timeout
// is replaced, at most browserStarts times.
func photograph(ctx context.Context, browser, address, file string, timeout time.Duration) error {
	for start := 1; ; start++ {
		limited, cancel := context.WithTimeout(ctx, timeout)
		err := runBrowser(limited, browser, address, file)
		hung := limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil || !hung:
			return err
		case start == browserStarts:
			return fmt.Errorf("none of %d browsers ended within %v: %w", browserStarts, timeout, err)
		}
	}
}

// runBrowser runs the browser once. It ends when the picture is in the file. The picture shows the page as the browser loaded
// it. With virtual time the browser would wait for the measurement of slow functions, but some of these browsers never ended.
func runBrowser(ctx context.Context, browser, address, file string) error {
	profile, err := os.MkdirTemp("", "callbraid-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile) // a remaining directory is in the system's temporary directory
	// The new picture has another name until it is complete. So a failure keeps the previous one.
	taken := file + ".new.png"
	defer os.Remove(taken) // fails after the rename
	arguments := []string{
		"--headless=new", "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--window-size=1400,900",
		"--user-data-dir=" + profile, "--screenshot=" + taken,
	}
	if os.Getuid() == 0 {
		arguments = append(arguments, "--no-sandbox") // it refuses to have one as root
	}
	command := exec.CommandContext(ctx, browser, append(arguments, address)...)
	command.WaitDelay = time.Second // its children may keep its output open
	output, err := command.CombinedOutput()
	if err == nil {
		err = os.Rename(taken, file)
	}
	if err != nil {
		return fmt.Errorf("%s failed: %w%s", browser, err, lastLines(string(output)))
	}
	return nil
}
