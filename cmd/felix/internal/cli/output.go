package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"felix.dev/felix/cmd/felix/internal/term"
)

// choice is a flag with a fixed set of values.
type choice struct {
	value   string
	allowed []string
}

func newChoice(allowed ...string) choice { return choice{value: allowed[0], allowed: allowed} }

// String is the value; the flag library shows it as the default.
func (c *choice) String() string { return c.value }

// Type is what stands for the value in a usage text.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set takes one of the allowed values, in any case.
func (c *choice) Set(s string) error {
	for _, a := range c.allowed {
		if strings.EqualFold(a, s) {
			c.value = a
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
}

// register adds the flag and its completion to a command.
func (c *choice) register(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage)
	values := slices.Clone(c.allowed)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that does not exist
}

func outputFlag(cmd *cobra.Command) *choice {
	c := newChoice("table", "json", "yaml")
	c.register(cmd, "output", "o", "how to print it")
	return &c
}

// printAs writes a value in the format that was asked for; table draws it for people.
func printAs(w io.Writer, format string, value any, table func() *term.Table) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return table().Write(w)
}
