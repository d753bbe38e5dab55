package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"felix.dev/felix/broker/admin"
)

func readers(n int) admin.SubscriptionList {
	list := admin.SubscriptionList{Total: n}
	for i := range n {
		state := "live"
		if i == 0 {
			state = "blocked"
		}
		list.Subscriptions = append(list.Subscriptions, admin.Subscription{
			ID: uint64(i + 1), Name: admin.Name{Tenant: "t", Namespace: "default", Stream: "orders"}, State: state, LagRecords: uint64(n - i),
		})
	}
	return list
}

func TestWatchModel(t *testing.T) {
	m := &watchModel{interval: time.Hour, list: readers(2), at: time.Now(), fetch: func() tea.Msg { return readersMsg{list: readers(3)} }}
	if got := m.View().Content; !strings.Contains(got, "2 readers, 1 live, 1 blocked") || strings.Count(got, "orders") != 2 {
		t.Errorf("it shows\n%s", got)
	}
	_, ask := m.Update(askAgain{})
	if ask == nil {
		t.Fatal("the clock asks for nothing")
	}
	if _, later := m.Update(ask()); later == nil {
		t.Error("after an answer the clock stands still")
	}
	if got := m.View().Content; !strings.Contains(got, "3 readers") {
		t.Errorf("after an answer it shows\n%s", got)
	}

	// An error is shown beside the last answer.
	m.Update(readersMsg{err: errors.New("gone")})
	if got := m.View().Content; !strings.Contains(got, "gone") || !strings.Contains(got, "3 readers") {
		t.Errorf("after an error it shows\n%s", got)
	}

	m.Update(tea.WindowSizeMsg{Width: 40})
	for _, line := range strings.Split(m.View().Content, "\n")[4:] {
		if n := len([]rune(line)); n > 40 {
			t.Errorf("a line of %d in a window of 40: %q", n, line)
		}
	}

	_, quit := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	if quit == nil {
		t.Fatal("q does nothing")
	}
	if _, ok := quit().(tea.QuitMsg); !ok {
		t.Error("q does not quit")
	}
}

func TestWatchWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{env: Env{Stdout: &out}}
	output := newChoice("table", "json", "yaml")
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := a.watchReaders(ctx, &subsOptions{output: &output, interval: time.Millisecond}, func(context.Context) (admin.SubscriptionList, error) {
		if asked++; asked == 3 {
			cancel()
		}
		return readers(2), nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "2 readers"); got != 2 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("want two plain pictures, got %d in\n%s", got, out.String())
	}
}
