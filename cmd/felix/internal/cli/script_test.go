package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// leakTested counts goroutines after the tests of this process. The commands of the scripts are processes of their
// own.
type leakTested struct{ *testing.M }

func (m leakTested) Run() int {
	code := m.M.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(leakTested{m}, map[string]func(){"felix": func() { os.Exit(Main("test")) }})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"freeport": freePort,
			"waitfor":  waitFor,
			"cut":      cut,
			"flip":     flip,
		},
	})
}

// patience is how long a script waits for another process.
const patience = time.Minute

// exits STATUS COMMAND... runs a command and wants that exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	status := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if args[0] != strconv.Itoa(status) {
		ts.Fatalf("exit status %d, want %s", status, args[0])
	}
}

// freeport VARIABLE... sets variables to loopback addresses that nobody listens on, by UDP or TCP.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: freeport VARIABLE...")
	}
	for _, name := range args {
		udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
		ts.Check(err)
		tcp, err := net.Listen("tcp4", udp.LocalAddr().String())
		ts.Check(err)
		ts.Setenv(name, udp.LocalAddr().String())
		// Held until all are found, so that no two are the same.
		defer func() { ts.Check(errors.Join(tcp.Close(), udp.Close())) }()
	}
}

// waitfor REGEXP file FILE, or waitfor REGEXP COMMAND..., waits until a file or the output of a command matches.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitfor REGEXP file FILE | waitfor REGEXP COMMAND...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	var got string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if args[1] == "file" {
			text, err := os.ReadFile(ts.MkAbs(args[2]))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				ts.Fatalf("%v", err)
			}
			got = string(text)
		} else {
			_ = ts.Exec(args[1], args[2:]...) // it may fail until it is what we wait for
			got = ts.ReadFile("stdout")
		}
		if want.MatchString(got) {
			return
		}
	}
	ts.Fatalf("%q does not come; there is\n%s", args[0], got)
}

// logFile is the last of the files that match a pattern: the newest segment of a log.
func logFile(ts *testscript.TestScript, args []string) (*os.File, int64) {
	if len(args) != 2 {
		ts.Fatalf("usage: COMMAND FILE POSITION")
	}
	pos, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
	ts.Check(err)
	return f, pos
}

// cut FILE POSITION ends a file there.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	f, pos := logFile(ts, args)
	ts.Check(f.Truncate(pos))
	ts.Check(f.Close())
}

// flip FILE POSITION turns all bits of a byte.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	f, pos := logFile(ts, args)
	b := make([]byte, 1)
	_, err := f.ReadAt(b, pos)
	ts.Check(err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b, pos)
	ts.Check(err)
	ts.Check(f.Close())
}
