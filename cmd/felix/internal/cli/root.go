package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"felix.dev/felix/cmd/felix/internal/bench"
	"felix.dev/felix/cmd/felix/internal/settings"
	"felix.dev/felix/cmd/felix/internal/term"
)

// app is what the commands of one command line share.
type app struct {
	env     Env
	conn    settings.Flags
	verbose bool
}

// style is for what goes to standard error.
func (a *app) style() term.Style { return term.NewStyle(a.env.Stderr, a.env.Sources.Getenv) }

func newRoot(env Env) *cobra.Command {
	a := &app{env: env}
	root := group("felix", "Streams of records to many readers over QUIC",
		`felix is the broker, the command line to use it, a demonstration and a benchmark.

A reader that stalls harms nobody but itself: not the publisher, not the other readers, not
the broker's memory, and it is told exactly where to go on.`,
		`  felix serve --dev                               # a broker under ./data, ready to use
  felix stream create orders                      # then, in another terminal
  echo hello | felix pub orders
  felix sub orders --from earliest
  felix demo slow-consumer                        # what happens when a reader stalls
  felix demo failover                             # what happens when a broker dies`)
	root.Version = env.Version
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetVersionTemplate("felix {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{flagError(err)} })
	root.CompletionOptions.HiddenDefaultCmd = false
	a.setHelp(root)

	root.AddGroup(
		&cobra.Group{ID: "broker", Title: "The broker:"},
		&cobra.Group{ID: "records", Title: "Records:"},
		&cobra.Group{ID: "look", Title: "Looking at things:"},
		&cobra.Group{ID: "try", Title: "Trying it out:"},
		&cobra.Group{ID: "program", Title: "This program:"},
	)
	in := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	in("records", a.pubCommand(), a.subCommand())
	in("look", a.subsCommand(), a.inspectCommand(), a.contextCommand())
	in("broker", a.serveCommand(), a.clusterCommand(), a.streamCommand(), a.tokenCommand())
	in("try", a.devClusterCommand(), a.demoCommand(), holding(bench.NewCommand()))
	in("program", a.versionCommand())
	root.SetHelpCommandGroupID("program")
	root.SetCompletionCommandGroupID("program")
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			holding(c)
			c.Short = "Print a script that makes a shell complete what is typed"
		}
	}
	return root
}

// flagError says what a flag takes in words of the command line instead of the language that it is written in.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want := ""
	switch t := invalid.GetFlag().Value.Type(); {
	case t == "duration":
		want = "a time with its unit, such as 500ms, 30s or 24h"
	case strings.HasPrefix(t, "int"):
		want = "a whole number"
	case strings.HasPrefix(t, "uint"):
		want = "a whole number that is not negative"
	case strings.HasPrefix(t, "float"):
		want = "a number"
	default:
		return err
	}
	return fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// group makes a command that only holds others.
func group(use, short, long, example string) *cobra.Command {
	return holding(&cobra.Command{Use: use, Short: short, Long: long, Example: example})
}

// holding makes a command without arguments show its help, and with an unknown one say what is near.
func holding(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text = ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("there is no command %q%s", args[0], text)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// args makes a cobra argument check end in a usage error that shows what is wanted.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			_, want, _ := strings.Cut(cmd.Use, " ")
			if want == "" {
				want = "no arguments"
			}
			return usagef("got %s, want %s", term.Plural(len(args), "argument"), want)
		}
		return nil
	}
}
