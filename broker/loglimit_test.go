package broker

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A storm of one message leaves room for the others, and is counted.
func TestLogLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newLogLimit(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		storm := func() {
			for i := range 100 {
				log.With("client", i).WithGroup("g").Warn("token refused", "n", i)
				log.Debug("detail")
			}
		}
		lines := func(what string) int { return strings.Count(out.String(), what) }
		storm()
		log.Error("something else")
		if n := lines("token refused"); n != limitLines {
			t.Errorf("%d lines of the storm, want %d", n, limitLines)
		}
		if lines("something else") != 1 || lines("detail") != 100 || lines("moreLeftOutUntil") != 1 {
			t.Errorf("the rest:\n%s", out.String())
		}
		out.Reset()
		time.Sleep(limitWindow)
		storm()
		if n := lines("token refused"); n != limitLines || lines("leftOutBefore=80") != 1 {
			t.Errorf("%d lines of the next storm:\n%s", n, out.String())
		}
	})
}

// What is remembered is bounded, even if messages are not constants.
func TestLogLimitIsBounded(t *testing.T) {
	l := newLogLimit(slog.DiscardHandler)
	for i := range 3 * limitMessages {
		l.pass(fmt.Sprint(i))
	}
	if n := len(l.seen); n > limitMessages {
		t.Errorf("%d messages are remembered", n)
	}
}
