package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"felix.dev/felix/cmd/felix/internal/settings"
	"felix.dev/felix/cmd/felix/internal/term"
)

// Help is as wide as the terminal, within these bounds, and helpWidth without one.
const (
	minHelpWidth = 60
	helpWidth    = 80
	maxHelpWidth = 100
)

// setHelp makes a command and all below it show their help as people can read it: within the width of the terminal,
// and with what a command is about before the flags that every command has which talks to a broker.
func (a *app) setHelp(root *cobra.Command) {
	width := helpWidth
	if w := term.Width(a.env.Stdout); w > 0 {
		width = min(max(w, minHelpWidth), maxHelpWidth)
	}
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usageText(cmd, width))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		about := cmd.Long
		if about == "" {
			about = cmd.Short + "."
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s%s", reflow(about, width), usageText(cmd, width))
	})
	root.SetHelpCommand(a.helpCommand(root))
}

func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Show how to use a command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			at, rest, err := root.Find(args)
			if err == nil && len(rest) == 0 {
				return at.Help()
			}
			return usagef("there is no command %q", strings.Join(args, " "))
		},
	}
}

// usageText is everything of a command's help but what it is about.
func usageText(cmd *cobra.Command, width int) string {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s\n", title, strings.TrimRight(text, "\n"))
		}
	}
	use := "  " + cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		use = "  " + cmd.CommandPath() + " COMMAND"
	}
	section("Usage", use)
	if len(cmd.Aliases) > 0 {
		section("Aliases", "  "+cmd.NameAndAliases())
	}
	section("Examples", cmd.Example)
	commands := func(of string) string {
		var b strings.Builder
		for _, c := range cmd.Commands() {
			if c.GroupID == of && c.IsAvailableCommand() {
				fmt.Fprintln(&b, hanging(fmt.Sprintf("  %-*s ", cmd.NamePadding(), c.Name())+" "+c.Short, width))
			}
		}
		return b.String()
	}
	for _, g := range cmd.Groups() {
		section(strings.TrimSuffix(g.Title, ":"), commands(g.ID))
	}
	section("Commands", commands(""))

	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, connection.SortFlags = cmd.LocalFlags().SortFlags, false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[settings.Annotation]) > 0 {
			connection.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	section("Flags", own.FlagUsagesWrapped(width))
	section("Which broker ('felix context' shows what is in force)", connection.FlagUsagesWrapped(width))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' has more about a command.\n", cmd.CommandPath())
	}
	return b.String()
}

// reflow breaks the paragraphs of a text anew. Lines that are indented are a list, each item on a line of its own.
func reflow(text string, width int) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		line := ""
		for next := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(next, "  ") || line == "" {
				if line != "" {
					fmt.Fprintln(&b, hanging(line, width))
				}
				line = next
				continue
			}
			line += " " + next
		}
		fmt.Fprintln(&b, hanging(line, width))
	}
	return b.String()
}

// item is what a line of a list begins with: what it is about, and the gap before the text.
var item = regexp.MustCompile(`^ +\S+(?: \S+)*  +`)

// hanging breaks a line; what goes on stands below where the text began.
func hanging(line string, width int) string {
	indent := len(item.FindString(line))
	var b strings.Builder
	b.WriteString(line[:indent])
	at := indent
	for i, word := range strings.Fields(line[indent:]) {
		switch {
		case i == 0:
		case at+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}
