package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/seglog"
	"felix.dev/felix/broker/vfs"
	"felix.dev/felix/cmd/felix/internal/term"
)

func (a *app) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Check logs on disk: clean, repairable or refused",
		Long: `Check every record of the logs in a folder, without changing anything. DIR is the folder of one log, or
any folder above, such as a broker's data folder. What a running broker is writing may look torn: ask it
to stop, or ask again afterwards, before you believe a verdict that is not clean.

  clean        there is nothing to repair
  repairable   opening repairs it, and nothing that was acknowledged is lost (a torn tail after a crash)
  refused      data that was acknowledged is damaged: readers get what is before it, appends are refused

Exit status: 0 if all are clean, 3 if the worst is repairable, 4 if any is refused, 1 if a folder or file
could not be read.`,
		Example: "  felix inspect ./data\n  felix inspect ./data --segments\n  felix inspect ./data -o json | jq '.[] | select(.verdict != \"clean\")'",
		Args:    args(cobra.ExactArgs(1)),
	}
	output := outputFlag(cmd)
	segments := cmd.Flags().Bool("segments", false, "show every segment")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		dirs, err := logDirs(args[0])
		if err != nil {
			return err
		}
		if len(dirs) == 0 {
			return fmt.Errorf("inspect %s: there is no log in it", args[0])
		}
		if dir, pid := brokerIn(args[0]); dir != "" {
			fmt.Fprintln(a.env.Stderr, a.style().Warn(fmt.Sprintf("a broker%s is at work in %s: what it is writing may look torn", pid, dir)))
		}
		logs := make([]inspected, 0, len(dirs))
		worst := seglog.VerdictClean
		for _, dir := range dirs {
			report, err := seglog.Inspect(vfs.OS, dir)
			if err != nil {
				return fmt.Errorf("inspect %s: %w", dir, err)
			}
			worst = max(worst, report.Verdict)
			logs = append(logs, inspectedOf(dir, report))
		}
		if output.value != "table" {
			if err := printAs(a.env.Stdout, output.value, logs, nil); err != nil {
				return err
			}
		} else if err := a.printInspected(logs, *segments); err != nil {
			return err
		}
		switch worst {
		case seglog.VerdictRepairable:
			return &statusError{exitRepairable}
		case seglog.VerdictRefused:
			return &statusError{exitRefused}
		case seglog.VerdictClean:
		}
		return nil
	}
	return cmd
}

// logDirs finds the folders at and below dir that hold segments.
func logDirs(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		parent := filepath.Dir(path)
		if !d.IsDir() && isSegment(d.Name()) && !slices.Contains(found, parent) {
			found = append(found, parent)
		}
		return nil
	})
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
		return nil, usagef("%s is a file; give the folder that it is in", dir)
	}
	return found, err
}

// isSegment knows a segment by its name: twenty digits and an ending.
func isSegment(name string) bool {
	digits, ok := strings.CutSuffix(name, ".log")
	return ok && len(digits) == 20 && strings.Trim(digits, "0123456789") == ""
}

// inspected is a log as `felix inspect -o json` prints it.
type inspected struct {
	Dir          string             `json:"dir"`
	Verdict      string             `json:"verdict"`
	Incarnation  string             `json:"incarnation"`
	OldestOffset uint64             `json:"oldest_offset"`
	NextOffset   uint64             `json:"next_offset"`
	Batches      uint64             `json:"batches"`
	Bytes        int64              `json:"bytes"`
	Problem      string             `json:"problem,omitempty"`
	Notes        []string           `json:"notes,omitempty"`
	Segments     []inspectedSegment `json:"segments"`
}

type inspectedSegment struct {
	BaseOffset uint64    `json:"base_offset"`
	NextOffset uint64    `json:"next_offset"`
	Batches    uint64    `json:"batches"`
	Hidden     uint64    `json:"hidden,omitempty"`
	Bytes      int64     `json:"bytes"`
	FileBytes  int64     `json:"file_bytes"`
	Oldest     time.Time `json:"oldest,omitzero"`
	Newest     time.Time `json:"newest,omitzero"`
	IndexOK    bool      `json:"index_ok"`
	StateOK    bool      `json:"state_ok"`
	Problem    string    `json:"problem,omitempty"`
}

func inspectedOf(dir string, r seglog.Report) inspected {
	log := inspected{
		Dir: dir, Verdict: r.Verdict.String(), Incarnation: hex.EncodeToString(r.Incarnation[:]), OldestOffset: r.Oldest, NextOffset: r.Next,
		Batches: r.Records, Bytes: r.Bytes, Problem: problemText(r.Problem), Notes: r.Notes, Segments: []inspectedSegment{},
	}
	for _, s := range r.Segments {
		log.Segments = append(log.Segments, inspectedSegment{
			BaseOffset: s.Base, NextOffset: s.Next, Batches: s.Records, Hidden: s.Hidden, Bytes: s.Bytes, FileBytes: s.FileBytes,
			Oldest: s.Oldest, Newest: s.Newest, IndexOK: s.IndexOK, StateOK: s.StateOK, Problem: problemText(s.Problem),
		})
	}
	return log
}

func problemText(p *seglog.Problem) string {
	if p == nil {
		return ""
	}
	return p.String()
}

func (a *app) printInspected(logs []inspected, segments bool) error {
	style := term.NewStyle(a.env.Stdout, a.env.Sources.Getenv)
	// The folders stand last: they are long, and the numbers before them then fit a narrow terminal.
	t := term.NewTable("VERDICT", ">OLDEST", ">NEXT", ">BATCHES", ">SIZE", ">SEGMENTS", "LOG")
	for _, l := range logs {
		t.Row(paintVerdict(style, l.Verdict), l.OldestOffset, l.NextOffset, l.Batches, term.Bytes(uint64(l.Bytes)), len(l.Segments), l.Dir)
	}
	if err := t.Write(a.env.Stdout); err != nil {
		return err
	}
	for _, l := range logs {
		if l.Problem == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.env.Stdout, "\n%s is %s: %s\n", l.Dir, l.Verdict, l.Problem); err != nil {
			return err
		}
	}
	for _, l := range logs {
		for _, note := range l.Notes {
			fmt.Fprintf(a.env.Stderr, "%s: %s\n", l.Dir, note)
		}
	}
	if !segments {
		return nil
	}
	for _, l := range logs {
		t := term.NewTable(">FROM", ">TO", ">BATCHES", ">SIZE", ">FILE", "NEWEST", "INDEX", "STATE", "?PROBLEM")
		for _, s := range l.Segments {
			newest := "-"
			if !s.Newest.IsZero() {
				newest = s.Newest.Format(time.RFC3339)
			}
			t.Row(s.BaseOffset, s.NextOffset, s.Batches, term.Bytes(uint64(s.Bytes)), term.Bytes(uint64(s.FileBytes)), newest, yes(s.IndexOK), yes(s.StateOK), s.Problem)
		}
		if _, err := fmt.Fprintf(a.env.Stdout, "\n%s\n", l.Dir); err != nil {
			return err
		}
		if err := t.Write(a.env.Stdout); err != nil {
			return err
		}
	}
	return nil
}

func paintVerdict(style term.Style, verdict string) string {
	switch verdict {
	case seglog.VerdictClean.String():
		return style.Good(verdict)
	case seglog.VerdictRepairable.String():
		return style.Warn(verdict)
	}
	return style.Bad(verdict)
}

func yes(ok bool) string {
	if ok {
		return "ok"
	}
	return "-"
}
