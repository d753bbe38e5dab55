package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scripted is what a broker process prints that is none: the next line for each line
// it is told.
func scripted(lines []string) {
	in := bufio.NewScanner(os.Stdin)
	for _, l := range lines {
		fmt.Println(l)
		in.Scan()
	}
}

func startScripted(t *testing.T, lines ...string) (*process, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProcess(t.Context(), []string{exe}, []string{scriptVariable + "=" + strings.Join(lines, "\n")})
}

func TestProcess(t *testing.T) {
	p, err := startScripted(t, `{"addr":"127.0.0.1:9","admin":"127.0.0.1:8","tenant":"dev","token":"t","ca_file":"c"}`, `{"cpu_s":1.5,"rss_bytes":7}`, `{"error":"no disk"}`, "nonsense")
	if err != nil {
		t.Fatal(err)
	}
	got := p.client()
	if diff := cmp.Diff([]string{got.Addrs[0], got.Tenant, got.Token, got.CAFile}, []string{"127.0.0.1:9", "dev", "t", "c"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	u, err := p.usage(t.Context(), momentLook)
	if err != nil || u.CPU != 1.5 || u.RSS != 7 {
		t.Errorf("usage %+v, %v", u, err)
	}
	for _, want := range []string{"no disk", "nonsense", "ended"} {
		if _, err := p.usage(t.Context(), momentEnd); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestProcessThatCannotStart(t *testing.T) {
	if _, err := startScripted(t, `{"error":"port in use"}`); err == nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("error %v", err)
	}
	if _, err := startScripted(t); err == nil {
		t.Error("a process that says nothing was taken for a broker")
	}
	if _, err := startProcess(t.Context(), []string{"/nonexistent"}, nil); err == nil {
		t.Error("a program that is not there has started")
	}
}

func TestServeCommands(t *testing.T) {
	var out bytes.Buffer
	var asked []moment
	err := serveCommands(&reach{Addr: "a"}, strings.NewReader("look\nboom\nend\n"), &out, func(m moment) (usage, error) {
		asked = append(asked, m)
		if m == "boom" {
			return usage{}, errors.New("boom")
		}
		return usage{CPU: float64(len(asked))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked, []moment{"look", "boom", "end"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	var lines []map[string]any
	for d := json.NewDecoder(&out); ; {
		var l map[string]any
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 4 || lines[0]["addr"] != "a" || lines[1]["cpu_s"] != 1. || lines[2]["error"] != "boom" || lines[3]["cpu_s"] != 3. {
		t.Errorf("lines %v", lines)
	}
}

func TestObserver(t *testing.T) {
	dir := t.TempDir()
	o := &observer{cpuProfile: dir + "/cpu", memProfile: dir + "/mem"}
	for _, m := range []moment{momentCollect, momentTrim, momentBegin, momentLook, momentEnd, momentBegin, momentEnd} {
		if u, err := o.look(m); err != nil || u.Goroutines == 0 {
			t.Errorf("%s: %+v, %v", m, u, err)
		}
	}
	for _, name := range []string{"cpu", "mem"} {
		if s, err := os.Stat(dir + "/" + name); err != nil || s.Size() == 0 {
			t.Errorf("%s profile: %v", name, err)
		}
	}
	if _, err := o.look("nonsense"); err == nil {
		t.Error("nonsense was taken")
	}
	if _, err := (&observer{cpuProfile: dir + "/no/dir"}).look(momentBegin); err == nil {
		t.Error("a profile went nowhere")
	}
}
