package cli

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/cmd/felix/internal/term"
)

type fetchReaders func(context.Context) (admin.SubscriptionList, error)

// watchReaders shows the readers again and again: on a terminal in place, otherwise one after the other.
func (a *app) watchReaders(ctx context.Context, o *subsOptions, fetch fetchReaders) error {
	if !term.IsTerminal(a.env.Stdout) || o.output.value != "table" {
		return a.repeatReaders(ctx, o, fetch)
	}
	list, err := fetch(ctx) // what is wrong with the settings is told as by any other command
	if err != nil {
		return err
	}
	m := &watchModel{
		style: term.NewStyle(a.env.Stdout, a.env.Sources.Getenv), width: term.Width(a.env.Stdout), interval: o.interval,
		list: list, at: time.Now(),
		fetch: func() tea.Msg {
			list, err := fetch(ctx)
			return readersMsg{list, err, time.Now()}
		},
	}
	_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(a.env.Stdin), tea.WithOutput(a.env.Stdout), tea.WithoutSignalHandler()).Run()
	if err != nil && ctx.Err() == nil { // otherwise it was Ctrl-C
		return err
	}
	return nil
}

func (a *app) repeatReaders(ctx context.Context, o *subsOptions, fetch fetchReaders) error {
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	for {
		list, err := fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C is how one ends it
		case err != nil:
			return err
		case o.output.value != "table":
			err = printAs(a.env.Stdout, o.output.value, list, nil)
		default:
			_, err = fmt.Fprintln(a.env.Stdout, readersText(list, nil, time.Now(), 0, term.Style{}))
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// readersMsg is what a question to the broker came to.
type readersMsg struct {
	list admin.SubscriptionList
	err  error
	at   time.Time
}

// watchModel is the live view: the last answer, and the error since it if there is one.
type watchModel struct {
	style    term.Style
	width    int
	interval time.Duration
	fetch    tea.Cmd

	list admin.SubscriptionList
	err  error
	at   time.Time
}

type askAgain struct{}

// Init starts the clock.
func (m *watchModel) Init() tea.Cmd { return m.later() }

func (m *watchModel) later() tea.Cmd {
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return askAgain{} })
}

// Update takes an answer, a key or a new size of the window.
func (m *watchModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case askAgain:
		return m, m.fetch
	case readersMsg:
		if m.err = msg.err; msg.err == nil {
			m.list = msg.list
		}
		m.at = msg.at
		return m, m.later()
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return m, tea.Quit
		}
	}
	return m, nil
}

// View draws the last answer. It takes the whole screen, so that the shell's lines are back afterwards.
func (m *watchModel) View() tea.View {
	v := tea.NewView(readersText(m.list, m.err, m.at, m.width, m.style))
	v.AltScreen = true
	return v
}
