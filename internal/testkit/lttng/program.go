// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Program is a traced program. It does a part of its work for each line on its standard input. It prints "ready"
// before the first part, and "done" after each. It ends at the end of its input, after it has written its own record
// of its calls to a file.
type Program struct {
	PID int
	// Path is the program's file, and Truth the file of its own record.
	Path, Truth string

	process *process
	input   io.WriteCloser
	said    chan string
}

// BuildC compiles a C program so that its functions are traced, and returns its path. The compiler also gets options.
// The path ends with them.
func (h *Home) BuildC(t testing.TB, source string, options ...string) string {
	t.Helper()
	path := filepath.Join(h.Dir, strings.TrimSuffix(filepath.Base(source), ".c")+strings.Join(options, ""))
	arguments := append([]string{"-O0", "-g", "-Wall", "-Werror", "-pthread", "-finstrument-functions"}, options...)
	run(t, exec.Command("gcc", append(arguments, "-o", path, source)...))
	return path
}

// StartC starts a C program from BuildC, and waits until it is ready. Its arguments are the file for its record and
// arguments.
func (h *Home) StartC(t testing.TB, path string, arguments ...string) *Program {
	t.Helper()
	return h.startC(t, functionTracer, path, arguments)
}

// StartFastC is StartC with the tracer's variant that does not record the function at its exit.
func (h *Home) StartFastC(t testing.TB, path string, arguments ...string) *Program {
	t.Helper()
	return h.startC(t, fastTracer, path, arguments)
}

func (h *Home) startC(t testing.TB, tracer, path string, arguments []string) *Program {
	t.Helper()
	p := h.program(t, path)
	p.start(t, h.cCommand(t, tracer, path, append([]string{p.Truth}, arguments...)...))
	return p
}

// RunC runs a C program that BuildC has compiled and that ends by itself.
func (h *Home) RunC(t testing.TB, path string, arguments ...string) {
	t.Helper()
	run(t, h.cCommand(t, functionTracer, path, arguments...))
}

func (h *Home) cCommand(t testing.TB, tracer, path string, arguments ...string) *exec.Cmd {
	t.Helper()
	command := h.command(path, arguments...)
	command.Env = append(command.Env, "LD_PRELOAD="+file(t, tracer))
	return command
}

// BuildJava compiles a Java program, and returns the path of its class. Each source is compiled once for all homes,
// because that needs more than a second of processor time.
func (h *Home) BuildJava(t testing.TB, source string) string {
	t.Helper()
	for name, class := range compiledJava.classes(t, source) {
		if err := os.WriteFile(filepath.Join(h.Dir, name), class, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(h.Dir, strings.TrimSuffix(filepath.Base(source), ".java"))
}

// compiledJava has the class files of each compiled source, by name.
var compiledJava = javaCompiler{compiled: map[string]map[string][]byte{}}

type javaCompiler struct {
	mu       sync.Mutex
	compiled map[string]map[string][]byte
}

func (c *javaCompiler) classes(t testing.TB, source string) map[string][]byte {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if classes, ok := c.compiled[source]; ok {
		return classes
	}
	dir := t.TempDir()
	// A compiler that lives for a second gains nothing by compiling itself well.
	run(t, exec.Command("javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-encoding", "UTF-8", "-cp", javaClasses(), "-d", dir, source))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	classes := make(map[string][]byte, len(entries))
	for _, entry := range entries {
		if classes[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	c.compiled[source] = classes
	return classes
}

// javaClasses returns a class path: the classes for programs with agents, and more.
func javaClasses(more ...string) string {
	return strings.Join(append([]string{javaCommon, javaAgent, javaLog4jAgent, javaLog4j}, more...), ":")
}

// LaunchJava starts a Java program from BuildJava, with arguments like StartC. It needs seconds to become ready.
// Ready waits for that.
func (h *Home) LaunchJava(t testing.TB, path string, arguments ...string) *Program {
	t.Helper()
	p := h.program(t, path)
	p.launch(t, h.javaCommand(t, path, append([]string{p.Truth}, arguments...)...))
	return p
}

// RunJava runs a Java program that BuildJava has compiled and that ends by itself.
func (h *Home) RunJava(t testing.TB, path string, arguments ...string) {
	t.Helper()
	run(t, h.javaCommand(t, path, arguments...))
}

func (h *Home) javaCommand(t testing.TB, path string, arguments ...string) *exec.Cmd {
	t.Helper()
	return h.command("java", h.javaArguments(t, path, arguments...)...)
}

func (h *Home) javaArguments(t testing.TB, path string, arguments ...string) []string {
	t.Helper()
	return append([]string{
		"-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", javaClasses(h.Dir),
		"-Djava.library.path=" + filepath.Dir(file(t, javaLibrary)), filepath.Base(path),
	}, arguments...)
}

func (h *Home) program(t testing.TB, path string) *Program {
	t.Helper()
	h.programs++
	return &Program{Path: path, Truth: path + "." + strconv.Itoa(h.programs) + ".truth", said: make(chan string, 16)}
}

func run(t testing.TB, command *exec.Cmd) {
	t.Helper()
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, said)
	}
}

func (p *Program) start(t testing.TB, command *exec.Cmd) {
	t.Helper()
	p.launch(t, command)
	p.Ready(t)
}

func (p *Program) launch(t testing.TB, command *exec.Cmd) {
	t.Helper()
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout = writer
	p.input = input
	p.process = start(t, command, p.Truth+".log")
	p.PID = command.Process.Pid
	_ = writer.Close() // the program has its own
	go func() {
		defer close(p.said)
		defer reader.Close()
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
}

// Ready waits until the launched program is ready.
func (p *Program) Ready(t testing.TB) {
	t.Helper()
	p.await(t, "ready")
}

// Step has the program do its work once, and waits until it is done.
func (p *Program) Step(t testing.TB) {
	t.Helper()
	p.Begin(t)
	p.Done(t)
}

// Begin makes the program do its work once, and does not wait.
func (p *Program) Begin(t testing.TB) {
	t.Helper()
	p.writeLine(t, "go")
}

func (p *Program) writeLine(t testing.TB, line string) {
	t.Helper()
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		t.Fatalf("%s: %v\n%s", p.Path, err, p.process.said())
	}
}

// Ask writes a line to the program and returns its next line.
func (p *Program) Ask(t testing.TB, line string) string {
	t.Helper()
	p.writeLine(t, line)
	return p.nextLine(t, "answer "+strconv.Quote(line))
}

// Done waits until the program has completed the work of Begin.
func (p *Program) Done(t testing.TB) {
	t.Helper()
	p.await(t, "done")
}

func (p *Program) await(t testing.TB, word string) {
	t.Helper()
	if said := p.nextLine(t, "print "+strconv.Quote(word)); said != word {
		t.Fatalf("expected %s to print %q, got %q\n%s", p.Path, word, said, p.process.said())
	}
}

// nextLine returns the program's next line. expected describes it for errors.
func (p *Program) nextLine(t testing.TB, expected string) string {
	t.Helper()
	select {
	case said, ok := <-p.said:
		if !ok {
			t.Fatalf("expected %s to %s, it has ended\n%s", p.Path, expected, p.process.said())
		}
		return said
	case <-time.After(2 * testkit.Patience):
		t.Fatalf("expected %s to %s within %v\n%s", p.Path, expected, 2*testkit.Patience, p.process.said())
		return ""
	}
}

// End waits until the program has ended.
func (p *Program) End(t testing.TB) {
	t.Helper()
	_ = p.input.Close() // an error means that it has ended
	select {
	case <-p.process.exited:
	case <-time.After(testkit.Patience):
		t.Fatalf("expected %s to end within %v\n%s", p.Path, testkit.Patience, p.process.said())
	}
	if p.process.exit != nil {
		t.Fatalf("%s: %v\n%s", p.Path, p.process.exit, p.process.said())
	}
}
